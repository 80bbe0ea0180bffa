import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Exec } from './exec.ts'
import { createNftTable, nftObstacle, renderTable, type TableContents } from './nftables.ts'
import { SharedTurns } from './timeSlices.ts'

const contents = (changes: Partial<TableContents> = {}): TableContents => ({
  frame: '\n\tmap ips { type ipv4_addr : verdict; }\n',
  chains: new Map([['a', ['accept']]]),
  sets: new Map(),
  maps: new Map([['ips', new Map([['10.0.0.1', 'goto a']])]]),
  ...changes,
})

test('SVC-06 a first table is written whole, an unchanged one not at all', () => {
  assert.equal(
    renderTable('ip t', contents(), undefined),
    [
      'add table ip t',
      'delete table ip t',
      'table ip t {\n\tmap ips { type ipv4_addr : verdict; }\n}',
      'add chain ip t a',
      'add rule ip t a accept',
      'add element ip t ips { 10.0.0.1 : goto a }',
      '',
    ].join('\n'),
  )
  assert.equal(renderTable('ip t', contents(), contents()), '')
})

test('SVC-06 a changed frame writes the table whole', () => {
  const script = renderTable('ip t', contents({ frame: '\n\tset other { type ipv4_addr; }\n' }), contents())
  assert.match(script, /^add table ip t\ndelete table ip t\n/)
  assert.match(script, /add rule ip t a accept/)
})

test('SVC-06 a changed declaration of a set writes the table whole, a new set is added', () => {
  const sets = (timeout: string) => contents({ sets: new Map([['affinity', `{ type ipv4_addr; timeout ${timeout}; }`]]) })
  assert.match(renderTable('ip t', sets('20s'), sets('10s')), /^add table ip t\ndelete table ip t\n/)
  assert.equal(renderTable('ip t', sets('10s'), contents()), 'add set ip t affinity { type ipv4_addr; timeout 10s; }\n')
})

test('SVC-06 additions come before map elements, and those before removals', () => {
  const after = contents({ chains: new Map([['b', ['drop']]]), maps: new Map([['ips', new Map([['10.0.0.1', 'goto b']])]]) })
  assert.equal(
    renderTable('ip t', after, contents()),
    [
      'add chain ip t b',
      'add rule ip t b drop',
      'delete element ip t ips { 10.0.0.1 }',
      'add element ip t ips { 10.0.0.1 : goto b }',
      'flush chain ip t a',
      'delete chain ip t a',
      '',
    ].join('\n'),
  )
})

test('SVC-06 a name holds only characters that nft reads as one word', () => {
  const script = renderTable('ip6 t', contents({ chains: new Map([['x-fd01::1; flush ruleset', ['goto x-fd01::1;']]]) }), contents())
  assert.match(script, /add chain ip6 t x-fd01--1--flush-ruleset\n/)
  assert.match(script, /goto x-fd01--1-\n/)
})

test('SVC-06 after a failed transaction the next one writes the whole table', async () => {
  const scripts: string[] = []
  let code = 0
  const exec = {
    run: async (_command: string, _args: readonly string[], { input }: { input?: string } = {}) => {
      scripts.push(String(input))
      return { code, stdout: '', stderr: 'refused', timedOut: false }
    },
  } as unknown as Exec
  const table = createNftTable(exec, 'ip', 't')
  await table.apply(contents())
  code = 1
  const changed = contents({ chains: new Map([['a', ['drop']]]) })
  await assert.rejects(table.apply(changed), /refused/)
  code = 0
  await table.apply(changed)
  assert.deepEqual(
    scripts.map((script) => script.startsWith('add table')),
    [true, false, true],
  )
  await table.apply(changed)
  assert.equal(scripts.length, 3)
})

test('SVC-06 an obstacle is named: no nft, or a kernel without the family', async () => {
  const answering = (code: number, stderr: string) => ({ run: async () => ({ code, stdout: '', stderr, timedOut: false }) }) as unknown as Exec
  assert.equal(await nftObstacle(answering(-1, ''), 'ip'), 'nft is not installed')
  assert.equal(await nftObstacle(answering(1, 'Operation not supported\n'), 'ip6'), 'nft does not work here: Operation not supported')
  assert.equal(await nftObstacle(answering(0, ''), 'ip'), undefined)
})

test('NPO-02 a table that is rendered in turns gets the same scripts, and one element of a large set is one element of the script', async () => {
  const scripts: { readonly turns: string[]; readonly once: string[] } = { turns: [], once: [] }
  const recording = (into: string[]) =>
    ({
      run: async (_command: string, _args: readonly string[], { input }: { input?: string } = {}) => {
        into.push(String(input))
        return { code: 0, stdout: '', stderr: '', timedOut: false }
      },
    }) as unknown as Exec
  const large = new Map(Array.from({ length: 300 }, (_, i) => [`10.1.${i >> 8}.${i & 255}`, '']))
  const sets = new Map(Array.from({ length: 300 }, (_, i) => [`pods-${i}`, '{ type ipv4_addr; }']))
  const before = contents({ sets, maps: new Map([...sets.keys()].map((name) => [name, large])) })
  const after = { ...before, maps: new Map([...before.maps, ['pods-7', new Map([...large, ['10.9.9.9', '']])]]) }
  const tables = [createNftTable(recording(scripts.turns), 'inet', 't', new SharedTurns()), createNftTable(recording(scripts.once), 'inet', 't')]
  for (const table of tables) for (const wanted of [before, after, after]) await table.apply(wanted)
  assert.deepEqual(scripts.turns, scripts.once)
  assert.equal(scripts.once.length, 2)
  assert.equal(scripts.once[1], 'add element inet t pods-7 { 10.9.9.9 }\n')
})
