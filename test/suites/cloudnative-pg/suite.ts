/**
 * CloudNativePG on a cluster of real nodes. `run` builds its operator into WORK/bin and names the MANIFEST of its module. The operator runs as the Deployment of the
 * manifest, and its instances run PostgreSQL from Debian's packages. A Pooler is not tried, since it needs an image of PgBouncer.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { PackagesMissing } from '../../e2e/support/debianImage.ts'
import { LocalCluster, obstacleToCluster } from '../../e2e/support/localCluster.ts'
import { install } from '../support/install.ts'
import { apply, hasCondition, kubectl, list, read, refusal, step, until } from '../support/kubectl.ts'
import { instances, isHealthy, isStreaming, name, namesOf, query, queryThroughService, readCluster } from './database.ts'
import { loadImages, withoutPulling } from './images.ts'
import { cluster } from './objects.ts'

const skipped = 77
const { MANIFEST = '' } = process.env
const system = 'cnpg-system'
const deployment = 'deployment/cnpg-controller-manager'

async function operator(): Promise<void> {
  await step('CRD-08 the operator of CloudNativePG becomes available, and writes its CA into its webhooks', async () => {
    await install(fs.readFileSync(MANIFEST, 'utf8'), withoutPulling)
    await kubectl(['rollout', 'status', deployment, '-n', system, '--timeout=180s'])
    type Configuration = { webhooks: readonly { clientConfig: { caBundle?: string } }[] }
    for (const kind of ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations']) {
      const hasCa = (all: readonly Configuration[]) => all.flatMap(({ webhooks }) => webhooks).every(({ clientConfig }) => clientConfig.caBundle)
      await until(`${kind} have the CA`, () => list<Configuration>(kind), hasCa)
    }
  })

  await step('CRD-08 its definition and its webhook complete a Cluster, and the webhook refuses one with two ways to start', async () => {
    await until('the Cluster is created', () => apply(cluster(name)).then(() => true), Boolean)
    const { spec } = await readCluster()
    assert.deepEqual([spec.enablePDB, spec.bootstrap?.initdb?.database, spec.postgresql?.parameters?.wal_level], [true, 'app', 'logical'])
    const text = await refusal(cluster('both', { bootstrap: { initdb: {}, recovery: { source: 'other' } } }))
    // kubectl prints the causes of an invalid object in place of the message, which names the webhook.
    assert.match(text, /^The Cluster "both" is invalid: [\s\S]*spec\.bootstrap: Forbidden: Only one bootstrap method can be specified at a time/)
  })
}

async function readiness(): Promise<void> {
  await step('CRD-08 a Cluster of two instances becomes Ready, each on its node, and one follows the other', async () => {
    await isHealthy('main-1', 2)
    assert.ok(hasCondition(await readCluster(), 'Ready'))
    const nodes = (await instances()).map(({ spec }) => spec.nodeName)
    assert.equal(new Set(nodes).size, 2, String(nodes))
    assert.deepEqual(await namesOf('services'), ['main-r', 'main-ro', 'main-rw'])
    await isStreaming('main-1', ['main-2'])
  })

  await step('CRD-08 a client with the password of the Secret writes through the Service of the primary, and the replica has the row', async () => {
    await queryThroughService('main-2', "create table kept (line text); insert into kept values ('before')")
    await until(
      'the replica has the row',
      () => query('main-2', 'select pg_is_in_recovery(), line from kept'),
      (text) => text === 't|before',
    )
  })

  await step('CRD-08 the PodDisruptionBudget of the primary refuses its eviction', async () => {
    const eviction = JSON.stringify({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'main-1', namespace: 'default' } })
    const evict = () => kubectl(['create', '--raw', '/api/v1/namespaces/default/pods/main-1/eviction', '-f', '-'], eviction)
    await assert.rejects(evict, /Cannot evict pod as it would violate the pod's disruption budget/)
  })
}

async function failover(): Promise<void> {
  await step('CRD-08 after its pod is deleted, the primary is replaced by the replica with all rows, and rejoins as a replica with its claim', async () => {
    const [claim, pod] = [await read('pvc', 'main-1'), await read('pod', 'main-1')]
    await kubectl(['delete', 'pod', 'main-1', '--wait=false'])
    await isHealthy('main-2', 2)
    await until('the Service leads to the new primary', () => queryThroughService('main-2', "insert into kept values ('after')").then(() => true), Boolean)
    await isStreaming('main-2', ['main-1'])
    assert.notEqual((await read('pod', 'main-1')).metadata.uid, pod.metadata.uid)
    assert.equal((await read('pvc', 'main-1')).metadata.uid, claim.metadata.uid)
    await until(
      'the old primary has all rows',
      () => query('main-1', 'select pg_is_in_recovery(), line from kept order by ctid'),
      (text) => text === 't|before\nt|after',
    )
  })
}

async function removal(): Promise<void> {
  await step('CRD-08 scaling the Cluster down removes the replica and its claim', async () => {
    await kubectl(['scale', `cluster/${name}`, '--replicas=1'])
    const left = async () => [(await instances()).map(({ metadata }) => metadata.name), await namesOf('pvc')].join(' ')
    await until('one instance is left', left, (names) => names === 'main-2 main-2')
  })

  await step('CRD-08 everything is deleted with the Cluster', async () => {
    await kubectl(['delete', 'cluster', name, '--timeout=100s'])
    for (const kind of ['pods', 'pvc', 'services', 'jobs', 'poddisruptionbudgets'])
      await until(
        `the ${kind} are gone`,
        () => namesOf(kind),
        (names) => names.length === 0,
      )
  })
}

async function showState(): Promise<void> {
  const show = async (...args: string[]) => console.log(await kubectl(args).catch(String))
  await show('get', 'nodes,pods,pvc,jobs,clusters.postgresql.cnpg.io', '-A', '-o', 'wide')
  await show('get', 'events', '-A', '--sort-by=.lastTimestamp')
  await show('logs', deployment, '-n', system, '--tail=40')
  for (const pod of await namesOf('pods').catch(() => [])) await show('logs', pod, '--all-containers', '--tail=20')
}

async function onRealNodes(): Promise<number> {
  const obstacle = obstacleToCluster(true)
  if (obstacle) {
    console.log(obstacle)
    return skipped
  }
  const local = await LocalCluster.start('cnpg', ['--nodes', '2'])
  // The steps' kubectl talks to this cluster, not to the one that runSuites.ts started.
  process.env.KUBECONFIG = local.env.KUBECONFIG
  try {
    await loadImages(local, fs.readFileSync(MANIFEST, 'utf8'))
    for (const part of [operator, readiness, failover, removal]) await part()
    return 0
  } catch (error) {
    console.log(error instanceof PackagesMissing ? error.message : (error as Error).stack)
    if (error instanceof PackagesMissing) return skipped
    await showState()
    return 1
  } finally {
    await local.delete()
  }
}

process.exitCode = await onRealNodes()
