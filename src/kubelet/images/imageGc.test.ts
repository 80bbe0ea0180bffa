import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RuntimeImage } from '#grpc/criTypes'
import { planImageGC, planOldImages, shortageMessage } from './imageGc.ts'

const image = (id: string, size: number, pinned = false): RuntimeImage => ({ id, repoTags: [], repoDigests: [], size, uid: null, username: '', pinned })
const images = [image('used', 50), image('old', 50), image('older', 30), image('young', 50), image('pause', 1, true), image('recent', 50)]
const use = (firstSeenMs: number, lastUsedMs = 0) => ({ firstSeenMs, lastUsedMs })
const input = {
  images,
  inUse: new Set(['used']),
  uses: new Map([
    ['young', use(999_999)],
    ['old', use(0, 2)],
    ['older', use(0, 1)],
    ['recent', use(0, 900_000)],
    ['pause', use(0)],
    ['used', use(0)],
  ]),
  nowMs: 1_000_000,
  minimumAgeMs: 120_000,
}

const fills = [
  { availableBytes: 160, remove: '', bytesToFree: 0 },
  { availableBytes: 150, remove: 'older old', bytesToFree: 50 },
  { availableBytes: 0, remove: 'older old recent', bytesToFree: 200 },
]
for (const { availableBytes, remove, bytesToFree } of fills) {
  test(`KUB-10 with ${availableBytes} of 1000 bytes left, image garbage goes by last use; what is used, pinned or young stays`, () => {
    const plan = planImageGC({ ...input, capacityBytes: 1000, availableBytes, highPercent: 85, lowPercent: 80 })
    assert.deepEqual([plan.remove.map(({ id }) => id).join(' '), plan.bytesToFree], [remove, bytesToFree])
  })
}

const ages = [
  { maximumAgeMs: 0, startedMs: 0, want: '' },
  { maximumAgeMs: 500_000, startedMs: 0, want: 'older old' },
  { maximumAgeMs: 500_000, startedMs: 600_000, want: '' },
]
for (const { maximumAgeMs, startedMs, want } of ages) {
  test(`KUB-10 images unused for more than ${maximumAgeMs} ms go when the kubelet runs since ${startedMs}`, () => {
    assert.equal(
      planOldImages({ ...input, maximumAgeMs, startedMs })
        .map(({ id }) => id)
        .join(' '),
      want,
    )
  })
}

test('KUB-10 the event of a disk that stays too full names its usage and the bytes that were freed', () => {
  const gibi = 2 ** 30
  const end = 'Investigate disk usage, as it could be used by active images, logs, volumes, or other data.'
  assert.equal(
    shortageMessage(10 * gibi, gibi / 2, 1024),
    `Insufficient free disk space on the node's image filesystem (95% of 10.0 GiB used). Failed to free sufficient space by deleting unused images (freed 1024 bytes). ${end}`,
  )
  assert.match(shortageMessage(1536, 0, 0), /\(100% of 1\.5 KiB used\)/)
})
