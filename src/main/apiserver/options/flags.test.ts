import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decimal, duration, type Flags, type FlagValues, flag, list, pairs, parseFlags, text, texts, UsageError, whole } from './flags.ts'

const flags = {
  name: text('a text', 'x'),
  names: list('a list'),
  claims: texts('texts'),
  gates: pairs('pairs'),
  on: flag('a switch'),
  count: whole('a count', 4),
  chance: decimal('a chance', 0.5),
  wait: duration('a time', 1000),
}
const defaults = { name: 'x', names: [], claims: [], gates: {}, on: false, count: 4, chance: 0.5, wait: 1000 }

const read: { args: string[]; want: object }[] = [
  { args: [], want: {} },
  { args: ['--name=a', '--count', '-3'], want: { name: 'a', count: -3 } },
  { args: ['--name='], want: { name: '' } },
  { args: ['--names=a,b', '--names=c'], want: { names: ['a', 'b', 'c'] } },
  { args: ['--claims=a,b', '--claims', 'c=d'], want: { claims: ['a,b', 'c=d'] } },
  { args: ['--gates=A=true,B=false', '--gates=C=1'], want: { gates: { A: 'true', B: 'false', C: '1' } } },
  { args: ['--on', '--name', 'y'], want: { on: true, name: 'y' } },
  { args: ['--on=false'], want: { on: false } },
  { args: ['--chance=0.01', '--wait=1m30s'], want: { chance: 0.01, wait: 90_000 } },
]
for (const { args, want } of read) {
  test(`reads ${args.join(' ') || 'nothing'}`, () => assert.deepEqual(parseFlags(flags, args), { ...defaults, ...want }))
}

const refused: { args: string[]; faults: string[] }[] = [
  { args: ['--nam=a', 'stray', '-x'], faults: ['unknown flag: --nam', 'unknown argument: stray', 'unknown argument: -x'] },
  { args: ['--toString=1'], faults: ['unknown flag: --toString'] },
  { args: ['--name'], faults: ['flag needs an argument: --name'] },
  { args: ['--count=1.5'], faults: ['invalid argument "1.5" for "--count" flag: expected a whole number'] },
  {
    args: ['--on=maybe', '--wait=5'],
    faults: ['invalid argument "maybe" for "--on" flag: expected true or false', 'invalid argument "5" for "--wait" flag: expected a duration such as 1m30s'],
  },
  { args: ['--gates=A'], faults: ['invalid argument "A" for "--gates" flag: malformed pair, expect string=string'] },
]
for (const { args, faults } of refused) {
  test(`refuses ${args.join(' ')}`, () => {
    assert.throws(
      () => parseFlags(flags, args),
      (error) => error instanceof UsageError && assert.deepEqual(error.faults, faults) === undefined,
    )
  })
}

test('every value is shown in the notation it is given in', () => {
  const args = ['--names=a,b', '--gates=A=true', '--on', '--wait=1m30s', '--chance=0.01']
  const all: Flags = flags
  const values: FlagValues<Flags> = parseFlags(all, args)
  const shown = Object.fromEntries(Object.entries(all).map(([name, one]) => [name, one.format(values[name])]))
  assert.deepEqual(shown, { name: 'x', names: '[a,b]', claims: '[]', gates: 'A=true', on: 'true', count: '4', chance: '0.01', wait: '1m30s' })
})
