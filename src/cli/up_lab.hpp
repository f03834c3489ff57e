// `weft up --lab`: a first site on this machine, with a fault to find.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::cli {

// The lab's name, and the cable that gets worse.
inline constexpr std::string_view up_lab_link = "ctsw:1->rtsw:3", up_lab_cable = "rtsw:3--ctsw:1";

// Fabric, key, list of devices and site file, where they are not there yet. Fails: Errc::io.
Status write_lab_site(const std::string& folder, const std::string& name);

// Brings the lab up from the files of the current folder, and writes its addresses. Fails:
// Errc::unsupported, naming what this machine lacks; Errc::io with the words of weft lab.
Status start_lab(const std::string& name, const model::Fabric& fabric);
Status stop_lab(const std::string& name);

// Makes the fault when probes have run for some seconds, and says what becomes of it.
class LabTour {
 public:
  LabTour(std::string name, std::string url, std::string file, bool makes_fault);
  ~LabTour();
  // Called often; asks the service twice a second.
  void turn(bool is_probing);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::cli
