#include "apps/cli/interrupt.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

#include "apps/cli/terminal.hpp"

namespace orrery::cli {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

// The data of the signal handler: names one after another, each with a zero byte, and an empty one at the end. A signal
// handler can access globals only.
std::string names_storage;                           // NOLINT
std::atomic<const char*> names_to_remove = nullptr;  // NOLINT

std::atomic<int> noted_signal = 0;  // NOLINT

extern "C" void note_signal(int signal) { noted_signal = signal; }

extern "C" void remove_and_end(int signal) {
  const char* name = names_to_remove.load();
  while (name != nullptr && *name != '\0') {
    (void)::unlink(name);
    while (*name != '\0') { ++name; }
    ++name;
  }
  (void)std::signal(signal, SIG_DFL);
  (void)::raise(signal);
}

}  // namespace

PartialFiles::PartialFiles(const std::vector<std::string>& names) {
  if (CapturedOutput::current() != nullptr) { return; }
  names_storage.clear();
  for (const std::string& name : names) { names_storage += name + '\0'; }
  names_to_remove = names_storage.c_str();
  for (const int signal : kSignals) {
    // An ignored signal stays ignored, so that a program under nohup survives the end of its terminal.
    if (std::signal(signal, remove_and_end) == SIG_IGN) { (void)std::signal(signal, SIG_IGN); }
  }
}

PartialFiles::~PartialFiles() {
  if (CapturedOutput::current() != nullptr) { return; }
  for (const int signal : kSignals) {
    if (std::signal(signal, SIG_DFL) == SIG_IGN) { (void)std::signal(signal, SIG_IGN); }
  }
  names_to_remove = nullptr;
}

InterruptFlag::InterruptFlag() {
  if (CapturedOutput::current() != nullptr) { return; }
  noted_signal = 0;
  for (const int signal : kSignals) {
    if (std::signal(signal, note_signal) == SIG_IGN) { (void)std::signal(signal, SIG_IGN); }
  }
}

InterruptFlag::~InterruptFlag() {
  if (CapturedOutput::current() != nullptr) { return; }
  for (const int signal : kSignals) {
    if (std::signal(signal, SIG_DFL) == SIG_IGN) { (void)std::signal(signal, SIG_IGN); }
  }
  if (noted_signal != 0) { (void)::raise(noted_signal); }
}

bool InterruptFlag::is_set() {
  const CapturedOutput* host = CapturedOutput::current();
  return host != nullptr ? host->stop.load() : noted_signal != 0;
}

}  // namespace orrery::cli
