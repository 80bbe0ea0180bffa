import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { parseBody, readyBody } from '../core/body.ts'
import { YamlThread } from './yamlThread.ts'

const long = (start: string) => Buffer.from(start.padEnd(40_000, '# filler\n'))

test('API-03 the thread parses long YAML, a flow mapping too, but not short YAML or JSON', async () => {
  const yaml = new YamlThread()
  const flow = `{a: [${'b, '.repeat(20_000)}]}`
  const cases = [
    Buffer.from('a: 1'),
    long('a: 1\n'),
    long(' \n{"a": 1}\n'),
    Buffer.from(`{"a": 1}${' '.repeat(40_000)}`),
    long('[{a: 1}]\n'),
    Buffer.from(flow),
  ]
  const ready = await Promise.all(
    cases.map((bytes) => readyBody({ request: undefined as never, deps: { yaml } }, { type: 'bytes', bytes, contentType: 'application/yaml' })),
  )
  assert.deepEqual(
    ready.map((body) => body.type === 'bytes' && body.contentType),
    ['application/yaml', 'application/json', 'application/json', 'application/yaml', 'application/json', 'application/json'],
  )
  assert.deepEqual(
    ready.map((body) => Object.keys(parseBody(body, true).value as object)),
    [['a'], ['a'], ['a'], ['a'], ['0'], ['a']],
  )
})

test('API-03 the thread parses YAML and reports its errors, while the main thread keeps running', async () => {
  const thread = new YamlThread()
  let turns = 0
  let isDone = false
  const count = () => {
    turns++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  const entries = Array.from({ length: 40_000 }, (_, index) => `k${index}: v`)
  const [object, fault] = await Promise.allSettled([thread.toJson(Buffer.from(entries.join('\n'))), thread.toJson(Buffer.from('a: [\n'))])
  isDone = true
  assert.equal(object.status, 'fulfilled')
  assert.equal(Object.keys(JSON.parse(object.value.toString())).length, entries.length)
  assert.ok(fault.status === 'rejected' && isStatus(fault.reason, 'BadRequest'))
  assert.match((fault.reason as Error).message, /^error converting YAML to JSON: yaml: line 2/)
  assert.ok(turns > 10, `${turns} turns of the event loop`)
  // The thread ended after its last job; the next job starts another.
  assert.equal((await thread.toJson(Buffer.from('a: yes'))).toString(), '{"a":true}')
})
