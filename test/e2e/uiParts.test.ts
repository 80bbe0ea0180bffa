/** Each part of an object's page (ARC-16) on a phone, in the dark and after a restart of the server, and changes of workloads with their effect, in Chromium. */
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { eventually, type LocalCluster } from './support/localCluster.ts'
import { type Flow, runFlows } from './support/pageFlows.ts'
import { viewFlow } from './support/viewFlow.ts'

const objects = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata:
      labels: {app: db}
      annotations: {skiff.dev/simulated-logs: "hello from db", skiff.dev/simulated-exec: '{"sh": {"stdout": "ready\\n"}}'}
    spec: {containers: [{name: main, image: example.com/db:1, ports: [{containerPort: 80}]}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agents}
spec:
  selector: {matchLabels: {app: agents}}
  template:
    metadata: {labels: {app: agents}}
    spec: {containers: [{name: main, image: example.com/agents:1}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: example.com/web:1}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: crashed
  annotations: {skiff.dev/simulated-exit-after-seconds: "1", skiff.dev/simulated-exit-code: "1", skiff.dev/simulated-logs: "the last words"}
spec: {containers: [{name: main, image: example.com/crashed:1}]}
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {selector: {app: db}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prices}
data: {tea: "3"}
`

async function setUp(cluster: LocalCluster): Promise<void> {
  await cluster.mustWith(objects, ['apply', '-f', '-'])
  await cluster.must(['rollout', 'status', 'statefulset/db', '--timeout=60s'])
  await cluster.must(['rollout', 'status', 'deployment/web', '--timeout=60s'])
}

const fieldOf = (cluster: LocalCluster, what: readonly string[], jsonpath: string) => cluster.must(['get', ...what, '-o', `jsonpath=${jsonpath}`])
const dialog = (page: Page) => page.getByRole('dialog')

const parts = [
  'object/pods/default/db-0/events',
  'object/pods/default/db-0/logs',
  'object/pods/default/db-0/shell',
  'object/pods/default/db-0/files',
  'object/pods/default/db-0/calls',
  'object/services/default/db/rules',
  'object/statefulsets.apps/default/db/related',
  'object/configmaps/default/prices/history',
  'list/nodes',
]

const changes: readonly Flow[] = [
  {
    name: 'ARC-16 a DaemonSet is restarted in the page, and each of its pods is another one afterwards',
    run: async ({ page, open, cluster }) => {
      const uids = async () => (await fieldOf(cluster, ['pods', '-l', 'app=agents'], '{.items[*].metadata.uid}')).split(' ')
      const before = new Set(await uids())
      await open('#/object/daemonsets.apps/default/agents/summary')
      await page.getByRole('button', { name: 'Restart' }).click()
      await dialog(page).getByRole('button', { name: 'Restart' }).click()
      await page.getByText('agents restarts').waitFor()
      await eventually('other pods', 60_000, uids, (now) => now.length === before.size && now.every((uid) => !before.has(uid)))
    },
  },
  {
    name: 'ARC-16 a Deployment that is deleted without its dependants leaves its ReplicaSet and its pods',
    run: async ({ page, open, cluster }) => {
      const pods = () => fieldOf(cluster, ['pods', '-l', 'app=web'], '{.items[*].metadata.name}')
      const before = await pods()
      await open('#/object/deployments.apps/default/web/summary')
      await page.getByRole('button', { name: 'Delete' }).click()
      await dialog(page).getByLabel('What depends on it').selectOption('Orphan')
      await dialog(page).getByRole('button', { name: 'Delete' }).click()
      await page.getByRole('heading', { name: 'web does not exist' }).waitFor()
      assert.equal(await pods(), before)
      assert.equal(await fieldOf(cluster, ['replicasets', '-l', 'app=web'], '{.items[0].metadata.ownerReferences}'), '')
    },
  },
  {
    name: 'ARC-16 a pod of a StatefulSet that is deleted in the page is there again, as another object',
    run: async ({ page, open, cluster }) => {
      const uid = () => fieldOf(cluster, ['pod', 'db-0'], '{.metadata.uid}')
      const before = await uid()
      await open('#/object/pods/default/db-0/summary')
      await page.getByText(before).waitFor()
      await page.getByRole('button', { name: 'Delete' }).click()
      await dialog(page).getByRole('button', { name: 'Delete' }).click()
      await page.getByText(before).waitFor({ state: 'detached' })
      await cluster.must(['wait', '--for=condition=Ready', 'pod/db-0', '--timeout=60s'])
      await page.getByText(await uid()).waitFor()
      assert.notEqual(await uid(), before)
    },
  },
  {
    name: 'ARC-16 the log of the run before a restart is shown on demand',
    run: async ({ page, open, cluster }) => {
      await eventually(
        'a restart',
        60_000,
        () => fieldOf(cluster, ['pod', 'crashed'], '{.status.containerStatuses[0].restartCount}'),
        (count) => Number(count) > 0,
      )
      await open('#/object/pods/default/crashed/logs')
      await page.getByLabel('before the restart').check()
      await page.getByRole('log').getByText('the last words').waitFor()
    },
  },
  {
    name: 'ARC-16 the events of a node are those that its kubelet and the controllers wrote about it',
    run: async ({ page, open, cluster }) => {
      const node = await fieldOf(cluster, ['nodes'], '{.items[0].metadata.name}')
      await cluster.must(['annotate', 'node', node, 'skiff.dev/simulated-failure=the runtime is broken'])
      await cluster.must(['wait', '--for=condition=Ready=false', `node/${node}`, '--timeout=60s'])
      await open(`#/object/nodes/-/${node}/events`)
      await page.getByRole('list', { name: 'Events' }).getByText('NodeNotReady', { exact: true }).first().waitFor()
      await cluster.must(['annotate', 'node', node, 'skiff.dev/simulated-failure-'])
      await cluster.must(['wait', '--for=condition=Ready', `node/${node}`, '--timeout=60s'])
    },
  },
]

const restart: readonly Flow[] = [
  {
    name: 'ARC-16 views that poll, a log and an explanation continue after a restart of the server, without being loaded again',
    run: async ({ context, served, cluster }) => {
      const views = ['live', 'object/services/default/db/why', 'capacity', 'object/pods/default/db-0/logs'] as const
      const pages = await Promise.all(
        views.map(async (view) => {
          const page = await context.newPage()
          await page.goto(`${served.origin}/#/${view}`)
          await page.locator('main h1').first().waitFor()
          return page
        }),
      )
      const [live, why, capacity, logs] = pages as [Page, Page, Page, Page]
      await logs.getByRole('log').getByText('hello from db').waitFor()
      await cluster.skiff(['stop', cluster.name])
      const start = await cluster.skiff(['start', cluster.name])
      assert.equal(start.code, 0, start.stderr)
      await cluster.must(['create', 'configmap', 'after'])
      await cluster.must(['scale', 'statefulset', 'db', '--replicas=0'])
      await why.getByText('it has 0 ready endpoints').waitFor({ timeout: 90_000 })
      await capacity
        .getByRole('img', { name: /^CPU: / })
        .first()
        .waitFor()
      await live.getByRole('article', { name: 'API server' }).getByText('ms each').waitFor({ timeout: 60_000 })
      await logs.getByRole('heading', { name: 'db-0 does not exist' }).waitFor({ timeout: 60_000 })
      await Promise.all(pages.map((page) => page.close()))
    },
  },
]

runFlows('e2e-ui-parts', ['--simulated-nodes', '2', '--history', '1h'], setUp, [...parts.map(viewFlow), ...changes, ...restart])
