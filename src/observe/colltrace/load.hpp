// Files of a job, in whatever format each is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "observe/colltrace/job.hpp"

namespace weft::observe::colltrace {

// Files and folders (their files, not those of folders below). What is no trace is left out with a
// note where it lies in a folder, and an error where it was named. A broken file of a rank, e.g.
// one that was cut short, is left out with a note; its rank then has no trace. Fails: Errc::io, and
// as the readers do, for all files at once; Errc::parse if all are broken; Errc::value where rings
// name several jobs, and none of them is the `wanted` one.
Result<Job> load_job(const std::vector<std::string>& paths, std::string_view wanted = {});

}  // namespace weft::observe::colltrace
