// The local page of Orrery and its interface: POST /api/COMMAND answers what `orrery COMMAND --json` prints.
//
// Each request runs the command in a process of its own (child.hpp), with the request's JSON object as its flags
// (arguments.hpp). Neither files of the machine are read for a request nor written. Answers:
//   200  the document of --json (also where the answer is "no": nothing fits)
//   400  {"error": "…"}: bad input, in the words of the command line
//   403  a foreign Host or Origin, or no token (guard.hpp); 404 no such path; 405 another method
//   413  a request of more than 1 MiB; 500 an internal error; 503 too many requests; 504 out of time
// With "Accept: application/x-ndjson" a line {"progress": {"done": 10, "all": 100}} for each step, and at the end
// {"status": 200, "answer": …}. The command ends if the client leaves.
//
// GET /study answers the page of a study's results, as `orrery report` writes it now, if the server was given a study.
#pragma once

#include <memory>

#include "apps/server/setup.hpp"
#include "orrery/core/error.hpp"

namespace orrery::server {

class Server {
 public:
  explicit Server(Setup setup);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // Takes the port; fails if it is in use or needs other rights. Returns the port.
  [[nodiscard]] Result<int> bind();
  // Serves until `stop`.
  void run();
  // From another thread, or from a signal's handler through one.
  void stop();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace orrery::server
