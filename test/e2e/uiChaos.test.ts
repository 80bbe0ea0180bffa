/** Faults from the page of `skiff ui` (X10), in Chromium: what each does to the cluster, that it is undone after a reload, and what it asks before. And the ports of pods (ARC-16). */
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import type { LocalCluster } from './support/localCluster.ts'
import { type Flow, runFlows } from './support/pageFlows.ts'
import { viewFlow } from './support/viewFlow.ts'

const objects = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: example.com/web:1, ports: [{containerPort: 80, name: http}], readinessProbe: {httpGet: {port: 80}, periodSeconds: 1, failureThreshold: 1}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, name: http}, {port: 53, protocol: UDP, name: dns}]}
---
apiVersion: v1
kind: Pod
metadata: {name: plain, labels: {app: plain}}
spec: {containers: [{name: main, image: example.com/a:1}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: looker}
`

async function setUp(cluster: LocalCluster): Promise<void> {
  await cluster.mustWith(objects, ['apply', '-f', '-'])
  await cluster.must(['create', 'clusterrole', 'looker', '--verb=get,list,watch', '--resource=nodes,pods,namespaces'])
  await cluster.must(['create', 'clusterrolebinding', 'looker', '--clusterrole=looker', '--serviceaccount=default:looker'])
  for (const [index, node] of (await nodeNames(cluster)).entries())
    await cluster.must(['label', 'node', node, `topology.kubernetes.io/zone=zone-${index === 0 ? 'a' : 'b'}`])
  await cluster.must(['rollout', 'status', 'deployment/web', '--timeout=60s'])
  await cluster.must(['wait', '--for=condition=Ready', 'pod/plain', '--timeout=60s'])
}

const nodeNames = async (cluster: LocalCluster) => (await cluster.must(['get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}'])).split(' ')
const podsOf = async (cluster: LocalCluster, selector: string, path: string) =>
  (await cluster.must(['get', 'pods', '-l', selector, '-o', `jsonpath={range .items[*]}${path}{"\\n"}{end}`])).split('\n')

/** Asks again until the answer fits. */
async function until(ask: () => Promise<boolean>, what: string): Promise<void> {
  for (const deadline = Date.now() + 30_000; !(await ask()); ) assert.ok(Date.now() < deadline, `${what} after 30 s`)
}

const inForce = (page: Page) => page.getByRole('region', { name: 'In force' })
const dialog = (page: Page) => page.getByRole('dialog')

async function applyFault(page: Page, selector: string, count: number, fault: string): Promise<void> {
  const pods = page.getByRole('region', { name: 'Pods', exact: true })
  await pods.getByLabel('Label selector').fill(selector)
  await pods.getByLabel('Let random pods').fill(String(count))
  await pods.getByLabel('Fault', { exact: true }).selectOption(fault)
  await pods.getByRole('button', { name: 'Apply' }).click()
}

const flows: Flow[] = [
  {
    name: 'X10 the page offers faults where nodes are simulated; a node fails, and recovers after the page was loaded again',
    run: async ({ page, open, cluster }) => {
      await open('#/overview')
      await page.getByRole('link', { name: 'Chaos', exact: true }).click()
      const [node = ''] = await nodeNames(cluster)
      await page.getByRole('button', { name: `Fail node ${node}` }).click()
      await cluster.must(['wait', '--for=condition=Ready=false', `node/${node}`, '--timeout=30s'])
      await page.reload()
      await inForce(page).getByText('fails: a fault on purpose').waitFor()
      await inForce(page)
        .getByRole('button', { name: `Recover ${node}` })
        .click()
      await cluster.must(['wait', '--for=condition=Ready', `node/${node}`, '--timeout=30s'])
      await page.getByText('No fault is in force.').waitFor()
    },
  },
  {
    name: 'X10 several nodes fail only after a question',
    run: async ({ page, open, cluster }) => {
      await open('#/chaos')
      await page.getByLabel('Random nodes').fill('2')
      await page.getByRole('button', { name: 'Let them fail' }).click()
      await dialog(page).getByText('The container runtimes of these nodes fail').waitFor()
      await dialog(page).getByRole('button', { name: 'Cancel' }).click()
      assert.doesNotMatch(await cluster.must(['get', 'nodes', '-o', 'jsonpath={.items[*].metadata.annotations}']), /simulated-failure/)
    },
  },
  {
    name: 'X10 containers crash again and again until it is undone, and the annotations of their pods are as before',
    run: async ({ page, open, cluster }) => {
      await open('#/chaos?ns=default')
      await applyFault(page, 'app=web', 2, 'crash')
      await dialog(page).getByText('These pods get the fault until you undo it').waitFor()
      await dialog(page).getByRole('button', { name: 'Apply' }).click()
      await page.getByText('Pods with the fault: 2').waitFor()
      const restarts = () => podsOf(cluster, 'skiff.dev/chaos=crash', '{.status.containerStatuses[0].restartCount}')
      await until(async () => (await restarts()).every((count) => Number(count) >= 2), 'two restarts')
      await page.reload()
      await inForce(page).getByText('fault: crash again and again').first().waitFor()
      await inForce(page).getByRole('button', { name: 'Undo everything…' }).click()
      await dialog(page).getByText('Pods that are restored: 2.').waitFor()
      await dialog(page).getByRole('button', { name: 'Undo', exact: true }).click()
      await page.getByText('No fault is in force.').waitFor()
      assert.doesNotMatch((await podsOf(cluster, 'app=web', '{.metadata.annotations}{.metadata.labels}')).join(), /skiff\.dev/)
      await cluster.must(['wait', '--for=condition=Ready', 'pod', '-l', 'app=web', '--timeout=60s'])
    },
  },
  {
    name: 'X10 one pod is OOM-killed, and one exits once, without a question',
    run: async ({ page, open, cluster }) => {
      const last = async (path: string) => (await podsOf(cluster, 'app=plain', `{.status.containerStatuses[0].${path}}`)).join()
      await open('#/chaos?ns=default')
      await applyFault(page, 'app=plain', 1, 'oom')
      await until(async () => (await last('lastState.terminated.reason')) === 'OOMKilled', 'an OOM kill')
      await inForce(page).getByRole('button', { name: 'Undo default/plain' }).click()
      await page.getByText('No fault is in force.').waitFor()
      await cluster.must(['wait', '--for=condition=Ready', 'pod/plain', '--timeout=60s'])
      const before = Number(await last('restartCount'))
      await applyFault(page, 'app=plain', 1, 'exit')
      await until(async () => Number(await last('restartCount')) === before + 1, 'a restart')
      assert.equal(await last('lastState.terminated.reason'), 'Completed')
      await inForce(page).getByRole('button', { name: 'Undo default/plain' }).click()
      await page.getByText('No fault is in force.').waitFor()
    },
  },
  {
    name: 'X10 pods turn unready and ready again, and those without a readiness probe are left out with the reason',
    run: async ({ page, open, cluster }) => {
      await open('#/chaos?ns=default')
      await applyFault(page, '', 3, 'unready')
      await dialog(page).getByText('Without a readiness probe, and so left out: 1.').waitFor()
      await dialog(page).getByRole('button', { name: 'Apply' }).click()
      await cluster.must(['wait', '--for=condition=Ready=false', 'pod', '-l', 'app=web', '--timeout=30s'])
      const endpoints = () =>
        cluster.must(['get', 'endpointslices', '-l', 'kubernetes.io/service-name=web', '-o', 'jsonpath={.items[*].endpoints[*].conditions.ready}'])
      await until(async () => (await endpoints()) === 'false false false', 'no ready endpoint')
      await inForce(page).getByRole('button', { name: 'Undo everything…' }).click()
      await dialog(page).getByRole('button', { name: 'Undo', exact: true }).click()
      await cluster.must(['wait', '--for=condition=Ready', 'pod', '-l', 'app=web', '--timeout=30s'])
      await applyFault(page, 'app=plain', 1, 'unready')
      await page.getByText('No pod of the selection has a readiness probe').waitFor()
    },
  },
  {
    name: 'X10 random pods are evicted at a rate until it is stopped, and a selector that matches nothing or is none is said',
    run: async ({ page, open, cluster }) => {
      const uids = () => podsOf(cluster, 'app=web', '{.metadata.uid}')
      const before = new Set(await uids())
      await open('#/chaos?ns=default')
      const pods = page.getByRole('region', { name: 'Pods', exact: true })
      for (const [selector, text] of [
        ['app=none', 'No running pod on a simulated node matches app=none'],
        ['app web', 'unable to parse requirement'],
      ] as const) {
        await pods.getByLabel('Label selector').fill(selector)
        await pods.getByRole('button', { name: 'Begin…' }).click()
        await page.getByText(text).first().waitFor()
      }
      await pods.getByLabel('Label selector').fill('app=web')
      await pods.getByLabel('pods a minute').fill('120')
      await pods.getByRole('button', { name: 'Begin…' }).click()
      await dialog(page).getByText('Random pods are evicted, 120 a minute for 5 min').waitFor()
      await dialog(page).getByRole('button', { name: 'Begin' }).click()
      await inForce(page)
        .getByText(/evictions, 120 a minute for \d+ s more: [1-9]/)
        .waitFor()
      await until(async () => (await uids()).some((uid) => !before.has(uid)), 'a new pod')
      await inForce(page).getByRole('button', { name: 'Stop' }).click()
      await page.getByText(/^Pods evicted: \d+/).waitFor()
      await page.getByText('No fault is in force.').waitFor()
      await cluster.must(['rollout', 'status', 'deployment/web', '--timeout=60s'])
      assert.equal((await cluster.must(['get', 'pod', 'plain', '-o', 'jsonpath={.metadata.deletionTimestamp}'])).trim(), '')
    },
  },
  {
    name: 'X10 a zone is cordoned after a question, and its undo leaves nodes that others have cordoned',
    run: async ({ page, open, cluster }) => {
      const [, second = '', third = ''] = await nodeNames(cluster)
      await cluster.must(['cordon', second])
      await open('#/chaos')
      await page.getByRole('button', { name: 'Cordon zone-b' }).click()
      await dialog(page).getByText(`These nodes take no new pods: ${third}.`).waitFor()
      await dialog(page).getByRole('button', { name: 'Cordon' }).click()
      await inForce(page).getByText('cordoned nodes: 1').waitFor()
      assert.equal(await cluster.must(['get', 'node', third, '-o', 'jsonpath={.spec.unschedulable}']), 'true')
      await page.reload()
      await inForce(page).getByRole('button', { name: 'Uncordon…' }).click()
      await dialog(page).getByRole('button', { name: 'Uncordon' }).click()
      await page.getByText('No fault is in force.').waitFor()
      const states = await cluster.must(['get', 'nodes', second, third, '-o', 'jsonpath={.items[*].spec.unschedulable}'])
      assert.equal(states, 'true')
      await cluster.must(['uncordon', second])
    },
  },
  {
    name: 'X10 a user who may only look gets the server’s refusal for each fault',
    run: async ({ browser, cluster, served }) => {
      const [node = ''] = await nodeNames(cluster)
      const context = await browser.newContext()
      const page = await context.newPage()
      await page.goto(served.origin)
      await page.getByLabel('Address or token').fill(await cluster.must(['create', 'token', 'looker']))
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByRole('link', { name: 'Chaos', exact: true }).click()
      await page.getByRole('button', { name: `Fail node ${node}` }).click()
      await page.getByText('cannot patch resource "nodes"').waitFor()
      await applyFault(page, 'app=plain', 1, 'crash')
      await page.getByText('cannot patch resource "pods"').waitFor()
      await context.close()
    },
  },
  {
    name: 'ARC-16 a pod and a Service list their ports with the command that forwards them, and the page passes nothing on to pods',
    run: async ({ page, open, cluster, context, served }) => {
      await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: served.origin })
      const [name = ''] = await podsOf(cluster, 'app=web', '{.metadata.name}')
      const command = `kubectl port-forward -n default pods/${name} 8080:80`
      await open(`#/object/pods/default/${name}`)
      const ports = page.getByRole('region', { name: 'Ports' })
      await ports.getByText(command).waitFor()
      await ports.getByRole('button', { name: 'Copy' }).click()
      await page.getByText('The command is copied').waitFor()
      assert.equal(await page.evaluate('navigator.clipboard.readText()'), command)
      await open('#/object/services/default/web')
      await ports.getByText('kubectl port-forward -n default services/web 8080:80').waitFor()
      await ports.getByText('kubectl port-forward carries TCP alone').waitFor()
      const status = await page.evaluate<number>(
        `fetch('/api/v1/namespaces/default/pods/${name}/proxy/', { headers: { 'x-skiff-key': sessionStorage.getItem('skiff-ui-key') } }).then(({ status }) => status)`,
      )
      assert.equal(status, 403)
    },
  },
  viewFlow('chaos?ns=default'),
  viewFlow('object/services/default/web'),
]

runFlows('e2e-ui-chaos', ['--simulated-nodes', '3'], setUp, flows)
