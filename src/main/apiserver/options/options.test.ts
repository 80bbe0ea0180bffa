import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UsageError } from './flags.ts'
import { optionGroups, serverOptions } from './index.ts'

const noFiles = {
  file: (path: string): never => {
    throw new Error(`${path} was not to be read`)
  },
}

test('no flag belongs to two groups, and each explains itself', () => {
  const names = Object.values(optionGroups).flatMap((group) => Object.keys(group.flags))
  assert.equal(new Set(names).size, names.length)
  for (const group of Object.values(optionGroups)) for (const [name, flag] of Object.entries(group.flags)) assert.ok(flag.usage.length > 10, name)
})

test('without flags everything has its default', async () => {
  const { generic, flags } = await serverOptions([], noFiles)
  assert.deepEqual(generic.maxInFlight, { readOnly: 400, mutating: 200 })
  assert.equal(flags['request-timeout'], '1m0s')
})

test('what the groups find wrong is told together', async () => {
  await assert.rejects(
    serverOptions(['--goaway-chance=0.5', '--request-timeout=-1s', '--strict-transport-security-directives=max-age=1,other'], noFiles),
    (error) => {
      assert.deepEqual((error as UsageError).faults, [
        '--goaway-chance can not be less than 0 or greater than 0.02',
        '--request-timeout can not be negative value',
        '--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information',
      ])
      return true
    },
  )
})
