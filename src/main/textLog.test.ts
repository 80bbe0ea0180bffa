import assert from 'node:assert/strict'
import { test } from 'node:test'
import { printable } from '#base/printable'
import { createTextLog } from './textLog.ts'

const hostile = 'x\u001b[2K\r\nI0101 yes\u007f\u009b1m\u202e\u2028'

for (const format of ['text', 'json'] as const) {
  test(`OBS-15 a ${format} log entry is one line without control characters, whatever it is about`, () => {
    const lines: string[] = []
    const log = createTextLog({ write: (line) => void lines.push(line), verbosity: 2, format, nowMs: () => 0, pid: 1 }, hostile, { [hostile]: hostile })
    log.info(hostile, { pod: { namespace: hostile, name: hostile }, list: [hostile] })
    log.error(new Error(hostile, { cause: new Error(hostile) }), hostile)
    log.with(hostile).warn(hostile)
    assert.equal(lines.length, 3)
    for (const line of lines) {
      assert.equal(line.slice(0, -1), printable(line.slice(0, -1)))
      assert.equal(line.at(-1), '\n')
      if (format === 'json') assert.equal(JSON.parse(line)[hostile], hostile)
    }
  })
}

test('OBS-15 an error is logged with its stack on one line, the log of a program of its own', () => {
  const lines: string[] = []
  const log = createTextLog({ write: (line) => void lines.push(line), verbosity: 0, nowMs: () => 0, pid: 1, stacks: true })
  log.error(new Error('no luck'), 'Failed')
  assert.match(lines.join(''), /^E.*"Failed" err="no luck" stack="Error: no luck\\n +at .*textLog\.test\.ts.*"\n$/)
})
