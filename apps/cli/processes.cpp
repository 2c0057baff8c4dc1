#include "apps/cli/processes.hpp"

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "apps/cli/terminal.hpp"
#include "apps/mpi/mpi_library.hpp"

namespace orrery::cli {

namespace {

constexpr const char* kFileName = "liborrery_mpi.so";

// The first of these variables that is set.
int number_of(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names) {
    const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread starts
    if (text != nullptr) { return std::atoi(text); }
  }
  return otherwise;
}

// What mpirun (Open MPI, or one that sets PMI's variables) has started; 1: it was not used.
int started_processes() { return number_of({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, 1); }
int own_rank() { return number_of({"OMPI_COMM_WORLD_RANK", "PMI_RANK"}, 0); }

// All ranks meet the same error, which rank 0 reports. mpirun ends the others when rank 0 has ended; where it does not,
// they end by themselves.
constexpr std::chrono::seconds kWaitForRank0(2);

std::filesystem::path library_path() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto beside = program.parent_path() / kFileName;
  if (std::filesystem::exists(beside, error)) { return beside; }
  return program.parent_path() / "../lib/orrery" / kFileName;
}

class MpiRanks final : public study::Ranks {
 public:
  explicit MpiRanks(const OrreryMpi& mpi) : mpi_(mpi) {}

  [[nodiscard]] int rank() const override { return mpi_.rank(); }
  [[nodiscard]] int size() const override { return mpi_.size(); }
  void send(int to, const std::string& bytes) override { mpi_.send(to, bytes.data(), bytes.size()); }
  [[nodiscard]] std::optional<Message> receive() override {
    Message message;
    const long long count = mpi_.arrived(&message.from);
    if (count < 0) { return std::nullopt; }
    message.bytes.resize(static_cast<std::size_t>(count));
    mpi_.take(message.from, message.bytes.data(), message.bytes.size());
    return message;
  }
  void pause() override { std::this_thread::sleep_for(std::chrono::microseconds(500)); }

 private:
  const OrreryMpi& mpi_;
};

}  // namespace

struct Processes::Library {
  const OrreryMpi* mpi = nullptr;
  bool finished = false;
};

Result<std::unique_ptr<Processes>> Processes::start() {
  auto processes = std::unique_ptr<Processes>(new Processes);
  const int count = started_processes();
  if (count <= 1) { return processes; }
  const auto path = library_path();
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  using Functions = const OrreryMpi* (*)();
  const auto functions = handle == nullptr ? nullptr : reinterpret_cast<Functions>(dlsym(handle, kOrreryMpiSymbol));
  if (functions == nullptr && own_rank() > 0) {
    std::this_thread::sleep_for(kWaitForRank0);
    return tl::make_unexpected(Failure{});
  }
  if (functions == nullptr) {
    return fail(
        fmt::format("mpirun has started {} processes, but this program was built without MPI ({} is missing); "
                    "install libopenmpi-dev and build again, or run one process",
                    count, kFileName));
  }
  processes->library_ = std::make_unique<Library>(Library{functions(), false});
  processes->library_->mpi->start();
  processes->ranks_ = std::make_unique<MpiRanks>(*processes->library_->mpi);
  return processes;
}

void Processes::finish() {
  if (!library_ || library_->finished) { return; }
  library_->finished = true;
  library_->mpi->finish();
}

Result<int> Processes::failed(const Failure& failure) {
  if (!library_) { return tl::make_unexpected(failure); }
  if (ranks_->rank() == 0) {
    print_errors(failure);
    library_->mpi->abort(2);
  }
  // Other ranks have read the same study and found the same mistake; rank 0 ends the job.
  while (true) { ranks_->pause(); }
}

Processes::~Processes() = default;

}  // namespace orrery::cli
