#include "orrery/serving/tokenizer.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::serving::tokenizer_test {
namespace {

// Two prompts at 0, encoded together; three while they are: two together and one after them; one to an idle tokenizer.
TEST(Tokenizer, encodes_a_batch_at_a_time) {
  Tokenizer two(2);
  EXPECT_EQ(two.encode(0, 10), 10);
  EXPECT_EQ(two.encode(0, 30), 30);
  EXPECT_EQ(two.encode(5, 10), 40);  // from 30 on
  EXPECT_EQ(two.encode(6, 20), 50);
  EXPECT_EQ(two.encode(7, 5), 55);  // from 50 on
  EXPECT_EQ(two.busy(), 55);
  EXPECT_EQ(two.encode(100, 7), 107);
  EXPECT_EQ(two.busy(), 55 + 7);
}

struct Prompt {
  Ticks now = 0, duration = 0;
};

std::vector<Prompt> any_prompts() {
  std::vector<Prompt> prompts;
  Ticks now = 0;
  for (int i = *rc::gen::inRange(1, 30); i > 0; --i) {
    now += *rc::gen::inRange<Ticks>(0, 50);
    prompts.push_back({now, *rc::gen::inRange<Ticks>(1, 40)});
  }
  return prompts;
}

RC_GTEST_PROP(Tokenizer, with_a_limit_of_one_is_a_queue, ()) {
  Tokenizer tokenizer(1);
  Ticks end = 0;
  for (const Prompt& prompt : any_prompts()) {
    end = std::max(end, prompt.now) + prompt.duration;
    RC_ASSERT(tokenizer.encode(prompt.now, prompt.duration) == end);
  }
}

// No prompt is ready before it can be, and none waits longer than for the batch in progress.
RC_GTEST_PROP(Tokenizer, without_a_limit_waits_for_one_batch, ()) {
  Tokenizer tokenizer(1000);
  Ticks longest = 0;
  for (const Prompt& prompt : any_prompts()) {
    longest = std::max(longest, prompt.duration);
    const Ticks ready = tokenizer.encode(prompt.now, prompt.duration);
    RC_ASSERT(ready >= prompt.now + prompt.duration);
    RC_ASSERT(ready <= prompt.now + prompt.duration + longest);
  }
}

}  // namespace
}  // namespace orrery::serving::tokenizer_test
