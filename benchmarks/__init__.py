"""Speed and memory, always as ratios in one run."""
