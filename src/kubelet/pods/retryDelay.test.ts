import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorBackOffMs, networkBackOffMs, resyncInMs } from './retryDelay.ts'

const always = (value: number) => ({ next: () => value, int: () => 0 })
const minute = 60_000

for (const { says, backOffMs, syncFrequencyMs = minute, want } of [
  { says: 'a sync without failures at the regular interval', backOffMs: undefined, want: [minute, 1.5 * minute] },
  { says: 'a failed sync', backOffMs: errorBackOffMs, want: [10_000, 15_000] },
  { says: 'a sync without network', backOffMs: networkBackOffMs, want: [1_000, 1_500] },
  { says: 'a crash loop after its back-off', backOffMs: 40_000, want: [40_000, minute] },
  { says: 'a long crash loop at the regular interval', backOffMs: 300_000, want: [minute, 1.5 * minute] },
  { says: 'a crash loop whose back-off is over at once', backOffMs: -5, want: [0, 0] },
  { says: 'a long crash loop after its back-off, without a regular interval', backOffMs: 300_000, syncFrequencyMs: 0, want: [300_000, 450_000] },
  { says: 'nothing that succeeded, without a regular interval', backOffMs: undefined, syncFrequencyMs: 0, want: [undefined, undefined] },
])
  test(`KUB-04 resyncInMs repeats ${says}`, () =>
    assert.deepEqual(
      [0, 1].map((chance) => resyncInMs(backOffMs, syncFrequencyMs, always(chance))),
      want,
    ))
