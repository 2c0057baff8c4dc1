import json
import unittest

import draw_schedule


class Pictures(unittest.TestCase):
    def test_are_what_would_be_drawn_now(self):
        self.assertEqual(draw_schedule.main(["--check"]), 0)

    def test_have_a_cell_for_every_task_and_every_colour_used_a_legend(self):
        for schedule in json.loads((draw_schedule.FOLDER / "tasks.json").read_text()).values():
            tasks = [task for stage in schedule["stages"] for task in stage]
            cells = sum(2 if task[0] == "P" else 1 for task in tasks)
            words = draw_schedule.entries(schedule)
            swatches = sum(2 if kind == "P" else 1 for kind, _, _ in words)
            drawn = draw_schedule.drawing(schedule)
            self.assertEqual(drawn.count('class="cell"'), cells + swatches)
            for _, _, entry in words:
                self.assertIn(f">{entry}<", drawn)

    def test_all_stages_are_idle_for_the_same_time(self):
        # Each picture states the idle time of "each stage".
        for name, schedule in json.loads((draw_schedule.FOLDER / "tasks.json").read_text()).items():
            busy = {sum(task[4] - task[3] for task in stage) for stage in schedule["stages"]}
            self.assertEqual(len(busy), 1, name)


if __name__ == "__main__":
    unittest.main()
