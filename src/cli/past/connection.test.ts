import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Transport } from '#client/transport'
import { pointOf } from './connection.ts'

const nowMs = new Date(2026, 0, 31, 14, 30, 10).getTime()
const history = { revision: 300, oldestRevision: 200, oldestTime: '2026-01-31T13:00:00Z' }
const transport = { request: async () => ({ body: history }) } as unknown as Transport

const more = 'keep more history with --history: skiff stop lab; skiff start lab --history DURATION'

for (const [text, message, hint] of [
  ['2999-01-31T14:03:00Z', '2999-01-31T14:03:00Z is in the future'],
  ['23:59', '23:59 is in the future today, and there is no history of 23:59 yesterday: the oldest is of 2026-01-31T13:00:00Z (revision 200)'],
  ['-5h', 'there is no history of -5h: the oldest is of 2026-01-31T13:00:00Z (revision 200)', more],
  ['301', '301: the newest revision is 300'],
] as const) {
  test(`X5 a point without history is refused with the reason: ${text}`, async () => {
    const connection = { transport, namespace: 'default', cluster: 'lab' } as unknown as Parameters<typeof pointOf>[0]
    await assert.rejects(pointOf(connection, text, nowMs), { message, hint })
  })
}
