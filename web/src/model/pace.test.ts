import { expect, test } from "vitest";
import { World } from "../../tests/world";
import { Pace } from "./pace";

/** When flushes begin, in milliseconds, of a stream that never pauses; each flush takes as long as the next of `tookMs`. */
function begun(tookMs: readonly number[]): number[] {
  const world = new World();
  const [start, at] = [world.time, [] as number[]];
  const pace = new Pace(world, () => {
    pace.begin();
    at.push(world.time - start);
    pace.soon();
    world.time += tookMs[at.length - 1] ?? 0;
  });
  pace.soon();
  while (at.length <= tookMs.length) world.advance(1);
  pace.cancel();
  return at;
}

test("a stream is shown thirty times a second", () => {
  expect(begun([0, 5, 10, 0])).toEqual([0, 33, 66, 99, 132]);
});

test("a slow device rests three quarters of its time", () => {
  const [, , third = 0, fourth = 0, fifth = 0] = begun([40, 40, 40, 40]);
  expect([fourth - third, fifth - fourth]).toEqual([160, 160]);
});

test("what comes right after a slow picture was drawn waits its time too", () => {
  const world = new World();
  const [start, at] = [world.time, [] as number[]];
  const pace = new Pace(world, () => {
    pace.begin();
    at.push(world.time - start);
    world.time += 40;
    // A message that was there before the timers are.
    pace.soon();
  });
  pace.soon();
  while (at.length < 5) world.advance(1);
  pace.cancel();
  const [, , third = 0, fourth = 0, fifth = 0] = at;
  expect([fourth - third, fifth - fourth]).toEqual([160, 160]);
});

test("one picture that takes long delays nothing", () => {
  const [first, second = 0, third = 0] = begun([0, 100, 0]);
  expect([first, second]).toEqual([0, 33]);
  expect(third - second).toBeLessThan(110);
});

test("a late timer is no reason to wait for long", () => {
  const [, , third = 0, fourth = 0] = begun([2_000, 2_000, 200, 0]);
  expect(fourth - third).toBe(200);
});

test.each([0, -3_600_000])("a clock that goes %i ms with every flush stops no stream", (byMs) => {
  const world = new World();
  const start = world.time;
  let flushCount = 0;
  const pace = new Pace({ ...world, now: () => start + flushCount * byMs }, () => {
    pace.begin();
    flushCount += 1;
    pace.soon();
  });
  pace.soon();
  world.advance(2_000);
  expect(flushCount).toBeGreaterThan(7);
});
