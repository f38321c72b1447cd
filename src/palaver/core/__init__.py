"""The pure heart: `decide`, `evolve`, `settle`, `next_turn`. No I/O, no clock, no asyncio; everything comes in as arguments."""
