// The plain simulator that the fast one is held against, and the semantics of both in full.
#pragma once

#include "engine/packet/message.hpp"
#include "engine/packet/options.hpp"
#include "engine/packet/packet_run.hpp"
#include "route/router.hpp"

namespace weft::engine::packet {

// Every start, arrival, pause, wake and timer is an event of its own in one heap; every queue is a
// deque. Nothing is settled later, batched or skipped. What happens, to the picosecond:
//
// Time       Integer ps. b bytes take b / rate on a link, rounded up. A packet that starts at s is
//            at the far end, whole, at s + b / rate + latency. Switches add nothing.
// Ties       Events of one time: starts of waiting packets, arrivals (by link), checks of what may
//            resume (by switch), source links that serve a connection, pauses, resumes (all by
//            link), messages (by index), timeouts (by connection). The least of what is pending
//            is always next: an event that makes an earlier one of the same time goes after it.
// Queues     A link has one FIFO. A packet starts at once when the link is free, not paused, and
//            nothing waits; else it waits, and only then counts as buffered. A packet that starts
//            now has left its queue for all that arrives now.
// Sources    The first link of a path serves its connections, one packet each, while it is free,
//            not paused, and nothing waits. A connection joins the back of the link's ring when it
//            comes to have a packet that its window allows; it leaves by the front, and joins
//            again when it has sent a packet and has another.
// Receiver   Go-back-N. The expected packet is accepted and acknowledged; an earlier one makes it
//            repeat the last acknowledgement; a later one is discarded, and the first such since
//            the last accepted one makes a NACK. These go the reverse links at once.
// Sender     The timer of a connection runs while something is unacknowledged. It starts anew when
//            an acknowledgement brings progress and when a packet goes out with none before it.
//            At its end, as at a NACK, the next packet is the first unacknowledged one. At the
//            eighth end without progress the connection fails: it sends no more.
// ECN        RED on the bytes that wait before the packet, control packets included: no mark up to
//            kmin, pmax at kmax, all beyond. A packet is marked once, and never when dropped.
// PFC        By ingress (a link into a switch). A frame goes before what waits on the reverse link
//            and after what is on it, paused or not, and takes its time on the wire; it acts one
//            latency later. A packet that starts then still goes. Dynamic thresholds follow what
//            is left of the switch's memory after the headrooms of its ports; without a bound on
//            it nothing pauses.
// Drops      Data that must wait is dropped where its egress queue would outgrow per_port; without
//            PFC where its switch would outgrow its memory; with it where a paused ingress would
//            outgrow what it held when it was paused and headroom. Control packets always fit.
//
// Only Balance::path, go-back-N, one class, no congestion control, open admission, no rate limits;
// anything else aborts, and so does a pair of ends without a path.
// Left empty: tiers, series, deadlocks, storms, unfinished, digest, counters.events. `end` is when
// the last packet or frame arrived or message began. Frames of both kinds count, as control too.
// Cost: some 4 events a hop in a binary heap. For tests, not for use in a run.
PacketRunResult run_reference(const MessageSet& set, route::Router& router, const Options& options);

}  // namespace weft::engine::packet
