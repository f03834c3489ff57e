// The plain simulator that the fast one is held against, and the semantics of both in full.
#pragma once

#include <span>

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
//            the last accepted one makes a NACK, which acknowledges all before it. These go the
//            reverse links at once.
// Sender     The timer of a connection runs while something is unacknowledged. It starts anew when
//            an acknowledgement brings progress and when a packet goes out with none before it.
//            At its end, as at a NACK, the next packet is the first unacknowledged one. At the
//            eighth end without progress the connection fails: it sends no more.
// Selective  The receiver takes every packet and acknowledges it by its number. An acknowledgement
// repeat     also tells what else has come; so the sender knows of each packet that it sent before
//            the acknowledged one whether it came or was lost, for they cannot overtake each other.
//            What was lost is sent again before anything new, the least number first. New packets
//            stay within 4 windows, a power of two from 256 to 4,096, of the first unacknowledged.
//            A packet that was lost, or whose acknowledgement was, and of which no other tells, is
//            sent again max(25 us, 3 round trips) after it was sent; after the n-th such time 2^n
//            times as long, no longer than the connection's timer, unless that is shorter than the
//            first. Times of sending and round trips are counted in steps of 2^17 ps, rounded down;
//            the round trip is the one measured last when the loss could be known at the earliest
//            (the latency of the whole path after it, or for an acknowledgement that of the rest of
//            its way); before the first, that of an empty network. At the end of the connection's
//            timer all that is unacknowledged is sent again.
// Gathered   With an ack_delay and an ack_every other than 1 a receiver does not acknowledge a
//            packet that it takes, unless it is the ack_every-th since the last acknowledgement,
//            ends a message, or carries its sender's request: the sender has no more that it may
//            send, or (selective) sends the packet again. ack_delay after the first such packet all
//            of them are acknowledged. Selective: at once also what was there already, is marked,
//            or came behind a gap; an acknowledgement tells of all that has come, and one that is
//            lost of all that none before told of; its number is how many packets have come. One at
//            the end of the delay measures no round trip.
// ECN        RED on the bytes that wait before the packet, control packets included: no mark up to
//            kmin, pmax at kmax, all beyond. A packet is marked once, and never when dropped.
// PFC        By ingress (a link into a switch). A frame goes before what waits on the reverse link
//            and after what is on it, paused or not, and takes its time on the wire; it acts one
//            latency and the response time later. A packet that starts then still goes. Dynamic
//            thresholds follow what is left of the switch's memory after the headrooms and reserves
//            of its ports, which only what an ingress holds beyond its reserve takes; without a
//            bound on it nothing pauses.
// Losses     By a coin at the end of a link, before anything else.
// Drops      Data that must wait is dropped where its egress queue would outgrow per_port; without
//            PFC where its switch would outgrow its memory; with it where a paused ingress would
//            outgrow what it held when it was paused and headroom. Control packets always fit.
//
// Only Balance::path, one class, no congestion control, open admission, no rate limits; anything
// else aborts, and so does a pair of ends without a path. Selective repeat takes the router's path,
// where the engine hashes by table: they agree where there is one path only.
// Left empty: tiers, series, deadlocks, storms, unfinished, digest, counters.events. `end` is when
// the last packet or frame arrived or message began. Frames of both kinds count, as control too.
// Cost: some 4 events a hop in a binary heap. For tests, not for use in a run.
//
// `loss`: of each link, the share of packets that it loses; empty: none does.
PacketRunResult run_reference(const MessageSet& set, route::Router& router, const Options& options,
                              std::span<const double> loss = {});

}  // namespace weft::engine::packet
