// The extension module orrery._orrery: runs the commands of the program in this process, and reads traces. What users
// call is in orrery/__init__.py, which turns keyword arguments into flags and JSON into objects.
#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/run.hpp"
#include "apps/cli/terminal.hpp"
#include "python/failed.hpp"
#include "python/trace_columns.hpp"

namespace orrery::python {

namespace py = pybind11;

namespace {

struct Done {
  int code = 0;
  std::string out, err;
  bool stopped = false;
};

// On a thread of its own, so that this one can see Ctrl-C.
class Run {
 public:
  Run(std::vector<std::string> arguments, std::string data)
      : done_(std::async(std::launch::async, [this, arguments = std::move(arguments), data = std::move(data)] {
          cli::CapturedOutput captured(data);
          output_ = &captured;
          Done done;
          try {
            done.code = cli::exit_code_of(arguments);
          } catch (const cli::Stopped&) { done.stopped = true; }
          done.out = std::move(captured.out);
          done.err = std::move(captured.err);
          output_ = nullptr;
          return done;
        })) {}

  // Whether it ended within 50 ms.
  [[nodiscard]] bool ended() { return done_.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready; }
  void stop() {
    if (cli::CapturedOutput* output = output_) { output->stop = true; }
  }
  [[nodiscard]] Done take() { return done_.get(); }

 private:
  std::atomic<cli::CapturedOutput*> output_ = nullptr;
  std::future<Done> done_;
};

py::tuple run(std::vector<std::string> arguments, std::string data) {
  Run run(std::move(arguments), std::move(data));
  bool is_interrupted = false;
  for (;;) {
    {
      const py::gil_scoped_release free;
      if (run.ended()) { break; }
    }
    if (!is_interrupted && PyErr_CheckSignals() != 0) {
      is_interrupted = true;
      run.stop();
    }
  }
  const Done done = run.take();
  if (is_interrupted) { throw py::error_already_set(); }
  return py::make_tuple(done.code, py::bytes(done.out), py::bytes(done.err));
}

py::dict flag_of(const cli::Flag& flag) {
  py::dict result;
  result["name"] = flag.name;
  result["value"] = flag.value;
  result["doc"] = flag.doc;
  result["choices"] = flag.choices;
  result["negation"] = flag.negation;
  result["many"] = flag.many;
  return result;
}

py::list commands() {
  py::list result;
  for (const cli::Command& command : cli::all_commands()) {
    py::list flags, positionals;
    for (const cli::Flag& flag : command.flags()) { flags.append(flag_of(flag)); }
    for (const cli::Flag& positional : command.positionals()) { positionals.append(flag_of(positional)); }
    py::dict one;
    one["name"] = command.name();
    one["summary"] = command.summary();
    one["flags"] = std::move(flags);
    one["positionals"] = std::move(positionals);
    result.append(std::move(one));
  }
  return result;
}

}  // namespace

PYBIND11_MODULE(_orrery, m) {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) { std::rethrow_exception(thrown); }
    } catch (const Failed& failed) { PyErr_SetString(PyExc_ValueError, failed.what()); }
  });
  m.def("run", &run, py::arg("arguments"), py::arg("data"));
  m.def("commands", &commands);
  m.def("trace_columns", &trace_columns, py::arg("file"));
}

}  // namespace orrery::python
