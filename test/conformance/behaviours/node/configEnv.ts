/** ConfigMaps and Secrets as variables. Upstream: test/e2e/common/node/{configmap,secrets}.go. */
import assert from 'node:assert/strict'
import { configMaps, secrets } from '#client/builtIn'
import { type BehaviourGroup, table } from '../behaviour.ts'
import type { BehaviourContext } from '../context.ts'

const kinds = [
  {
    kind: 'ConfigMap',
    create: ({ create }: BehaviourContext, data: Record<string, string>) => create(configMaps, { metadata: { name: 'source' }, data }),
    all: (prefix?: string) => ({ ...(prefix === undefined ? {} : { prefix }), configMapRef: { name: 'source' } }),
    one: (key: string) => ({ configMapKeyRef: { name: 'source', key } }),
  },
  {
    kind: 'Secret',
    create: ({ create }: BehaviourContext, stringData: Record<string, string>) => create(secrets, { metadata: { name: 'source' }, stringData }),
    all: (prefix?: string) => ({ ...(prefix === undefined ? {} : { prefix }), secretRef: { name: 'source' } }),
    one: (key: string) => ({ secretKeyRef: { name: 'source', key } }),
  },
] as const

export const configEnv: BehaviourGroup = {
  sig: 'sig-node',
  title: 'ConfigMap / Secret env',
  rows: ['KUB-18'],
  behaviours: [
    ...table(kinds, ({ kind, create, one }) => ({
      name: `${kind} single var`,
      run: async (context) => {
        await create(context, { 'data-1': 'value-1' })
        assert.equal(await context.outputOf({ script: 'echo $DATA', container: { env: [{ name: 'DATA', valueFrom: one('data-1') }] } }), 'value-1')
      },
    })),
    ...table(kinds, ({ kind, create, all }) => ({
      name: `${kind} envFrom`,
      run: async (context) => {
        // Not through a shell, which keeps names to itself that it cannot use.
        await create(context, { data_1: 'value-1', 'data-2': 'value-2', data_3: 'value-3' })
        const output = await context.outputOf({ container: { command: ['env'], envFrom: [all(), all('p-')] } })
        const seen = output.split('\n').filter((line) => /^(p-)?data/.test(line))
        const wanted = ['data_1=value-1', 'data-2=value-2', 'data_3=value-3']
        assert.deepEqual(seen.sort(), [...wanted, ...wanted.map((line) => `p-${line}`)].sort())
      },
    })),
    ...table(kinds, ({ kind, create, all }) => ({
      name: `${kind} envFrom with odd prefixes`,
      run: async (context) => {
        await create(context, { '1-data': 'value-1', '2.data': 'value-2' })
        // A variable's name may be any printable text without "=".
        const output = await context.outputOf({ container: { command: ['env'], envFrom: [all(), all('$_-.!'), all('1 2')] } })
        const lines = new Set(output.split('\n'))
        for (const prefix of ['', '$_-.!', '1 2']) {
          assert.ok(lines.has(`${prefix}1-data=value-1`), output)
          assert.ok(lines.has(`${prefix}2.data=value-2`), output)
        }
      },
    })),
  ],
}
