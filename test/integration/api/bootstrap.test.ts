/** The objects that every cluster has from the start, and their restoration after a deletion or a change. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PriorityLevelConfiguration } from '#api/gen/types/flowcontrol.v1'
import { autoUpdateAnnotation as mark, suggestedFlowSchemas, suggestedPriorityLevels } from '#api/kinds/flowcontrol/bootstrapObjects'
import { VirtualClock } from '#base/virtualClock'
import { flowSchemas, namespaces, priorityLevelConfigurations, serviceCIDRs } from '#client/builtIn'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'

const keepIntervalMs = 10_000
const roundMs = 60_000

async function withCluster(use: (api: TestApiServer, nextRound: (ms?: number) => Promise<void>) => Promise<void>): Promise<void> {
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
  const clock = new VirtualClock('2026-01-01T00:00:00Z', settle)
  const api = await startTestApiServer({ clock })
  const nextRound = async (ms = roundMs) => {
    await clock.advance(ms)
    // A round is a chain of requests: each settles within a few turns.
    for (let i = 0; i < 100; i++) await settle()
  }
  try {
    await use(api, nextRound)
  } finally {
    await api.close()
  }
}

const namesOf = async (list: Promise<{ readonly items: readonly { readonly metadata: { readonly name?: string | undefined } }[] }>) =>
  (await list).items.map(({ metadata }) => metadata.name)

test('API-18 a cluster starts with 8 priority levels and 11 flow schemas', () =>
  withCluster(async ({ client }) => {
    assert.deepEqual(await namesOf(client.of(priorityLevelConfigurations).list()), [
      'catch-all',
      'exempt',
      'global-default',
      'leader-election',
      'node-high',
      'system',
      'workload-high',
      'workload-low',
    ])
    const { items } = await client.of(flowSchemas).list()
    const byPrecedence = items.map(({ metadata, spec }) => `${spec?.matchingPrecedence} ${metadata.name}`)
    assert.deepEqual(
      byPrecedence.sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10)),
      [
        '1 exempt',
        '2 probes',
        '100 system-leader-election',
        '400 system-node-high',
        '500 system-nodes',
        '800 kube-controller-manager',
        '800 kube-scheduler',
        '900 kube-system-service-accounts',
        '9000 service-accounts',
        '9900 global-default',
        '10000 catch-all',
      ],
    )
  }))

test('API-18 what differs is put right, unless an operator has said that it shall stay', () =>
  withCluster(async ({ client }, nextRound) => {
    const [levels, schemas] = [client.of(priorityLevelConfigurations), client.of(flowSchemas)]
    const shares = async (name: string) => (await levels.get({ name })).spec?.limited?.nominalConcurrencyShares
    const edit = (name: string, body: object) => levels.patch({ name }, 'merge', body)
    const limited = { limited: { nominalConcurrencyShares: 7 } }
    await edit('system', { spec: limited })
    await edit('workload-low', { spec: limited, metadata: { annotations: { [mark]: 'false' } } })
    await edit('node-high', { spec: limited, metadata: { annotations: { [mark]: null } } })
    await edit('exempt', { spec: { exempt: { nominalConcurrencyShares: 3 } } })
    await schemas.delete({ name: 'probes' })
    await schemas.delete({ name: 'catch-all' })
    const leftover = { ...suggestedPriorityLevels[0], metadata: { name: 'of-an-older-version', annotations: { [mark]: 'true' } } }
    await levels.create(leftover as PriorityLevelConfiguration)
    await nextRound()
    assert.equal(await shares('system'), 30)
    assert.equal(await shares('workload-low'), 7)
    assert.equal(await shares('node-high'), 7)
    assert.equal((await levels.get({ name: 'node-high' })).metadata.annotations?.[mark], 'false', 'what was changed without a mark is marked as an operator’s')
    assert.equal((await levels.get({ name: 'exempt' })).spec?.exempt?.nominalConcurrencyShares, 3)
    assert.deepEqual((await schemas.get({ name: 'probes' })).spec, suggestedFlowSchemas[0]?.spec)
    assert.equal((await schemas.get({ name: 'catch-all' })).spec?.matchingPrecedence, 10_000)
    assert.ok(!(await namesOf(levels.list())).includes('of-an-older-version'))
  }))

test('API-18 what is right is left alone', () =>
  withCluster(async ({ client }, nextRound) => {
    const before = (await client.of(flowSchemas).list()).metadata.resourceVersion
    await nextRound()
    assert.equal((await client.of(flowSchemas).list()).metadata.resourceVersion, before)
  }))

test('SVC-01 the default ServiceCIDR and the system namespaces are recreated while the server runs', () =>
  withCluster(async ({ client }, nextRound) => {
    await client.of(serviceCIDRs).delete({ name: 'kubernetes' })
    await nextRound(keepIntervalMs)
    assert.deepEqual((await client.of(serviceCIDRs).get({ name: 'kubernetes' })).spec?.cidrs, ['10.96.0.0/16'])
    assert.ok((await namesOf(client.of(namespaces).list())).includes('kube-node-lease'))
  }))
