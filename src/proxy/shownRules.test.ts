/** What bounds the requests for the rules of a Service: how many at once, the time and output of their programs, and the size of the answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ServiceRuleText } from '#api/debug/nodeNetwork'
import type { Exec, ExecOptions } from '#host/exec'
import type { ProxyModel, ServiceRule } from './model.ts'
import type { ProxyMode } from './modes/mode.ts'
import { createShownRules } from './shownRules.ts'

const model: ProxyModel = [{ family: 'IPv4', clusterCidrs: [], serviceCidrs: [], rules: [{ service: 'd/web' } as ServiceRule] }]

function asking(rulesOf: NonNullable<ProxyMode['rulesOf']>, exec: Partial<Exec> = {}) {
  const time = { ms: 0 }
  const shown = createShownRules({ exec: exec as Exec, clock: { monotonicMs: () => time.ms } })
  return { time, ask: () => shown({ mode: { name: 'a', rulesOf } as ProxyMode, model }, 'd/web') }
}

test('LRN-06 the proxy shows the rules of two Services at once, and refuses a third request with the reason', async () => {
  const ends: (() => void)[] = []
  const { ask } = asking(() => new Promise((resolve) => ends.push(() => resolve([]))))
  const running = [ask(), ask()]
  assert.match((await ask()).note ?? '', /already: try again later/)
  for (const end of ends) end()
  await Promise.all(running)
  const again = ask()
  ends.at(-1)?.()
  assert.deepEqual(await again, { mode: 'a', rules: [] })
})

test('LRN-06 the programs that show the rules of a Service have four seconds together, and bounded output', async () => {
  const given: ExecOptions[] = []
  const run: Exec['run'] = async (_command, _args, options = {}) => {
    given.push(options)
    time.ms += 1500
    return { code: 0, stdout: '', stderr: '', timedOut: false }
  }
  const { ask, time } = asking(
    async (exec) => {
      for (let i = 0; i < 4; i++) await exec.run('nft', [])
      return []
    },
    { run },
  )
  await ask()
  assert.deepEqual(
    given.map(({ timeoutMs }) => timeoutMs),
    [4000, 2500, 1000, 1],
  )
  assert.ok(given.every(({ maxOutputBytes = Number.POSITIVE_INFINITY }) => maxOutputBytes <= 2 ** 26))
})

test('LRN-06 the proxy cuts rules with many or long lines, and all together to less than a view may hold', async () => {
  const many = { place: 'many', lines: Array.from({ length: 5000 }, (_, i) => `line ${i}`) }
  const long = { place: 'long', lines: ['x'.repeat(100_000)] }
  const big = Array.from({ length: 64 }, (): ServiceRuleText => ({ place: 'big', lines: Array.from({ length: 64 }, () => 'y'.repeat(1024)) }))
  const { ask } = asking(async () => [many, long, { place: 'missing' }, ...big])
  const answer = await ask()
  const [first, second, third] = answer.rules ?? []
  assert.deepEqual([first?.lines?.length, first?.lines?.at(62), first?.lines?.at(63)], [64, 'line 62', 'and 4937 more'])
  assert.deepEqual([second?.lines?.[0]?.length, third], [1024, { place: 'missing' }])
  assert.ok(JSON.stringify(answer).length < 2 ** 20)
  assert.deepEqual(answer.rules?.at(-1)?.lines, ['not shown: the rules are too long together'])
})
