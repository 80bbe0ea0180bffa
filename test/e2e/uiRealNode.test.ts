/** The page of `skiff ui` over a node with containerd (ARC-16, LRN-01, LRN-06, LRN-07), in Chromium: what simulated nodes do not have. */
import assert from 'node:assert/strict'
import type { LocalCluster } from './support/localCluster.ts'
import { type Flow, runFlowsOnRealNodes } from './support/pageFlows.ts'
import { writeWebImage } from './support/webImage.ts'

const image = 'docker.io/library/web-app:1.0'
const script = 'echo started; while true; do echo tick; sleep 1; done'
const pod = (name: string, command: readonly string[]) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app: name } },
  spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image, imagePullPolicy: 'Never', command, ports: [{ containerPort: 80 }] }] },
})
const objects = [
  pod('web', ['/bin/busybox', 'sh', '-c', script]),
  { ...pod('absent', ['/bin/none']), spec: { containers: [{ name: 'main', image: 'docker.io/library/absent:1', imagePullPolicy: 'Never' }] } },
  { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec: { selector: { app: 'web' }, ports: [{ port: 80 }] } },
]

async function setUp(cluster: LocalCluster): Promise<void> {
  const [file = ''] = await writeWebImage(cluster.dir, ['1.0'])
  const { code, stderr } = await cluster.skiff(['image', 'load', '--name', cluster.name, file])
  assert.equal(code, 0, stderr)
  await cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }), ['apply', '-f', '-'])
  await cluster.must(['wait', '--for=condition=Ready', 'pod/web', '--timeout=90s'])
}

const flows: Flow[] = [
  {
    name: 'ARC-16 a command that is typed into the shell of a container is run there',
    run: async ({ page, open }) => {
      await open('#/object/pods/default/web/shell')
      await page.getByLabel('Program').selectOption('/bin/busybox sh')
      await page.locator('.xterm').click()
      await page.keyboard.type('echo out$((40+2))\n')
      await page.locator('.xterm').getByText('out42').first().waitFor()
    },
  },
  {
    name: 'ARC-16 the log of a container grows in the page while the container prints',
    run: async ({ page, open }) => {
      await open('#/object/pods/default/web/logs')
      await page.getByRole('log').getByText('started').waitFor()
      const lines = async () => Number(/^(\d+) lines/.exec((await page.getByRole('region', { name: 'Logs' }).getByRole('status').textContent()) ?? '')?.[1])
      const before = await lines()
      for (const deadline = Date.now() + 20_000; (await lines()) < before + 3; await page.waitForTimeout(200)) assert.ok(Date.now() < deadline, 'no new line')
    },
  },
  {
    name: 'LRN-06 the rules of a Service on a node have its address and its pod',
    run: async ({ page, open, cluster }) => {
      const [address, endpoint] = await Promise.all([
        cluster.must(['get', 'service', 'web', '-o', 'jsonpath={.spec.clusterIP}']),
        cluster.must(['get', 'pod', 'web', '-o', 'jsonpath={.status.podIP}']),
      ])
      await open('#/object/services/default/web/rules')
      await page.getByText(address).first().waitFor()
      await page.getByText(endpoint).first().waitFor()
    },
  },
  {
    name: 'LRN-07 the calls for a pod have those to the runtime and to its CNI plugins',
    run: async ({ page, open }) => {
      await open('#/object/pods/default/web/calls')
      await page.getByText('RunPodSandbox').first().waitFor()
      await page
        .getByText(/ADD \S+/)
        .first()
        .waitFor()
    },
  },
  {
    name: 'LRN-01 the twelve hops of a pod end with the calls of its runtime',
    run: async ({ page, open, cluster }) => {
      await cluster.mustWith(JSON.stringify({ object: 'pods/default/traced', seconds: 60 }), ['create', '--raw', '/skiff/traces/rules', '-f', '-'])
      await cluster.mustWith(JSON.stringify(pod('traced', ['/bin/busybox', 'sleep', '600'])), ['create', '-f', '-'])
      await cluster.must(['wait', '--for=condition=Ready', 'pod/traced', '--timeout=60s'])
      await open('#/object/pods/default/traced/trace')
      const hops = page.getByRole('list', { name: 'Hops of the pod' }).getByRole('listitem')
      await hops.filter({ hasText: '12 runtime' }).getByText('StartContainer').waitFor()
      assert.equal(await hops.count(), 12)
    },
  },
  {
    name: 'ARC-16 a pod whose image is not on the node says so in its events and in the overview',
    run: async ({ page, open }) => {
      await open('#/object/pods/default/absent/events')
      await page.getByRole('list', { name: 'Events' }).getByText('ErrImageNeverPull').first().waitFor()
      await open('#/overview?ns=default')
      await page.getByRole('article', { name: 'Pod', exact: true }).getByRole('link', { name: 'absent ErrImageNeverPull' }).waitFor()
    },
  },
]

runFlowsOnRealNodes('e2e-ui-real', ['--nodes', '1'], setUp, flows)
