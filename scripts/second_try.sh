#!/bin/sh
# Says, as the last word of a run, which tests passed only on their second try; `.second-try` keeps them until the next run.
cd "$(dirname "$0")/.." || exit 1
if [ -s .second-try ]; then
  printf '\nPassed only on the second try, each a defect of the test or of the product (kept in .second-try):\n'
  cat .second-try
else
  printf '\nEvery test passed on its first try.\n'
fi
