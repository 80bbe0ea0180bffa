/** Tasks in the page of `skiff ui` on a phone, by keyboard alone, in the dark, and with few rights (ARC-16), in Chromium. */
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import type { LocalCluster } from './support/localCluster.ts'
import { type Flow, runFlows, type Visit } from './support/pageFlows.ts'

const deployment = (name: string, annotations: string) => `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}}
spec:
  replicas: 2
  selector: {matchLabels: {app: ${name}}}
  template:
    metadata:
      labels: {app: ${name}}
      annotations: {${annotations}}
    spec: {containers: [{name: main, image: example.com/${name}:1}]}
---`

const objects = `${deployment('web', 'skiff.dev/simulated-logs: "hello from web"')}${deployment(
  'crashing',
  'skiff.dev/simulated-exit-after-seconds: "1", skiff.dev/simulated-exit-code: "1"',
)}
apiVersion: v1
kind: Pod
metadata: {name: huge}
spec: {containers: [{name: main, image: example.com/huge:1, resources: {requests: {cpu: "100"}}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prices}
data: {tea: "3"}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 4
  metrics: [{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: "1"}}}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: looker}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: looker}
rules:
- {apiGroups: ["", apps], resources: [pods, configmaps, deployments], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: looker}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: looker}
subjects: [{kind: ServiceAccount, name: looker, namespace: default}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
`

async function setUp(cluster: LocalCluster): Promise<void> {
  await cluster.mustWith(objects, ['apply', '-f', '-'])
  await cluster.must(['rollout', 'status', 'deployment/web', '--timeout=60s'])
}

const fieldOf = (cluster: LocalCluster, what: readonly string[], jsonpath: string) => cluster.must(['get', ...what, '-o', `jsonpath=${jsonpath}`])
const podOf = (cluster: LocalCluster, app: string) => fieldOf(cluster, ['pods', '-l', `app=${app}`], '{.items[0].metadata.name}')
const editor = (page: Page) => page.locator('.cm-content')

/** A flow of a phone's size. */
const onPhone = (name: string, run: Flow['run']): Flow => ({
  name,
  run: async (visit) => {
    await visit.page.setViewportSize({ width: 390, height: 844 })
    await run(visit)
  },
})

/** A flow of a user who may look at pods, ConfigMaps and Deployments of one namespace, in a browser of their own. */
const asLooker = (name: string, run: (page: Page, visit: Visit) => Promise<void>): Flow => ({
  name,
  run: async (visit) => {
    const { browser, cluster, served } = visit
    const context = await browser.newContext()
    context.setDefaultTimeout(20_000)
    const page = await context.newPage()
    await page.goto(served.origin)
    await page.getByLabel('Address or token').fill(await cluster.must(['create', 'token', 'looker']))
    await page.keyboard.press('Enter')
    await page.getByText('system:serviceaccount:default:looker', { exact: true }).waitFor()
    await run(page, visit)
    await context.close()
  },
})

/** Presses Tab until the element with this text has the focus. */
async function tabTo(page: Page, text: string): Promise<void> {
  for (let presses = 0; presses < 30; presses++) {
    if ((await page.evaluate('document.activeElement?.textContent')) === text) return
    await page.keyboard.press('Tab')
  }
  assert.fail(`Tab does not reach ${text}`)
}

const phone: readonly Flow[] = [
  onPhone('ARC-16 on a phone, a list is searched, and the log of a pod that is found is read', async ({ page, open }) => {
    await open('#/list/pods?ns=default')
    await page.getByRole('searchbox').fill('web')
    await page.getByRole('row').filter({ hasText: 'huge' }).waitFor({ state: 'detached' })
    await page.getByRole('row').getByRole('link', { name: /^web-/ }).first().click()
    await page.getByRole('link', { name: 'Logs', exact: true }).click()
    await page.getByRole('log').getByText('hello from web').waitFor()
  }),
  onPhone('ARC-16 on a phone, a row has one line for its name and one for the rest, whose end stays in sight', async ({ page, open }) => {
    await open('#/list/pods?ns=*')
    const row = page.getByRole('row').filter({ hasText: 'crashing' }).filter({ hasText: 'CrashLoopBackOff' }).first()
    await row.getByText('default', { exact: true }).waitFor()
    const [frame, age] = [await row.boundingBox(), await row.locator('time').last().boundingBox()]
    assert.ok(frame && age && age.y + age.height < frame.y + frame.height && age.x + age.width <= frame.x + frame.width, JSON.stringify({ frame, age }))
  }),
  onPhone('ARC-16 on a phone, a ConfigMap is edited and saved', async ({ page, open, cluster }) => {
    await open('#/object/configmaps/default/prices/yaml')
    const line = page.locator('.cm-line').filter({ hasText: 'tea:' }).first()
    await line.click()
    await page.keyboard.press('Home')
    await page.keyboard.press('Shift+End')
    await page.keyboard.insertText('  tea: "7"')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('prices is changed').waitFor()
    assert.equal(await fieldOf(cluster, ['cm', 'prices'], '{.data.tea}'), '7')
  }),
  onPhone('ARC-16 on a phone, the bar of an object’s parts is scrolled to the one that is shown', async ({ page, open, cluster }) => {
    await open(`#/object/pods/default/${await podOf(cluster, 'web')}/history`)
    const shown = page.getByRole('link', { name: 'History', exact: true })
    await page.getByRole('list', { name: 'Versions' }).waitFor()
    const box = await shown.boundingBox()
    assert.ok(box && box.x >= 0 && box.x + box.width <= 390, JSON.stringify(box))
  }),
  onPhone('ARC-16 on a phone, the overview leads to a pod without a node, and to the reason', async ({ page, open }) => {
    await open('#/overview?ns=default')
    // A pod may be pending for a while before it is called unhealthy.
    await page.getByRole('article', { name: 'Pod', exact: true }).getByRole('link', { name: /huge/ }).click({ timeout: 90_000 })
    await page.getByRole('link', { name: 'Why', exact: true }).click()
    await page.getByText('Insufficient cpu').first().waitFor()
  }),
]

const keyboard: readonly Flow[] = [
  {
    name: 'ARC-16 by keyboard alone, a namespace is chosen, and a Deployment of it is found, opened and scaled',
    run: async ({ page, open, cluster }) => {
      await open('#/overview?ns=*')
      await page.keyboard.press('g')
      await page.keyboard.type('namespace default')
      await page.keyboard.press('Enter')
      await page.keyboard.press('g')
      await page.keyboard.type('deploy')
      await page.keyboard.press('Enter')
      await page.getByRole('row').filter({ hasText: 'web' }).waitFor()
      await page.keyboard.press('/')
      await page.keyboard.type('crashing')
      await page.keyboard.press('Enter')
      await page.keyboard.press('j')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Deployment crashing' }).waitFor()
      await page.getByRole('button', { name: 'Scale' }).waitFor()
      await page.keyboard.press('s')
      await page.getByLabel('Replicas').waitFor()
      for (let presses = 0; presses < 9 && (await page.evaluate('document.activeElement?.type')) !== 'number'; presses++) await page.keyboard.press('Tab')
      await page.keyboard.press('ArrowUp')
      await page.keyboard.press('Enter')
      await page.getByText('crashing is scaled to 3').waitFor()
      assert.equal(await fieldOf(cluster, ['deployment', 'crashing'], '{.spec.replicas}'), '3')
    },
  },
  {
    name: 'ARC-16 by keyboard alone, an object is deleted, and Escape leaves it as it is',
    run: async ({ page, open, cluster }) => {
      await cluster.must(['create', 'configmap', 'short'])
      await open('#/object/configmaps/default/short/summary')
      await page.getByRole('button', { name: 'Delete' }).waitFor()
      await page.keyboard.press('D')
      await page.getByRole('dialog').waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      assert.equal(await fieldOf(cluster, ['cm', 'short'], '{.metadata.name}'), 'short')
      await page.keyboard.press('D')
      await page.getByRole('dialog').waitFor()
      await tabTo(page, 'Delete')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'short does not exist' }).waitFor()
    },
  },
  {
    name: 'ARC-16 by keyboard alone, a user logs in, finds a pod and reads its log',
    run: async ({ browser, served, cluster }) => {
      const token = await cluster.must(['create', 'token', 'reader'])
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
      context.setDefaultTimeout(20_000)
      const page = await context.newPage()
      await page.goto(served.origin)
      await page.getByRole('heading', { name: 'Skiff' }).waitFor()
      await page.keyboard.type(token)
      await page.keyboard.press('Enter')
      await page.getByText('system:serviceaccount:default:reader', { exact: true }).waitFor()
      await page.keyboard.press('g')
      await page.keyboard.type('po')
      await page.keyboard.press('Enter')
      await page.getByRole('row').filter({ hasText: 'crashing' }).first().waitFor()
      await page.keyboard.press('/')
      await page.keyboard.type('web')
      await page.keyboard.press('Enter')
      await page.getByRole('row').filter({ hasText: 'crashing' }).first().waitFor({ state: 'detached' })
      await page.keyboard.press('j')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: /^Pod web-/ }).waitFor()
      await page.keyboard.press('5')
      await page.getByRole('log').getByText('hello from web').waitFor()
      await context.close()
    },
  },
  {
    name: 'ARC-16 by keyboard alone, a node is cordoned and uncordoned',
    run: async ({ page, open, cluster }) => {
      const node = await fieldOf(cluster, ['nodes'], '{.items[0].metadata.name}')
      await open('#/overview')
      await page.keyboard.press('g')
      await page.keyboard.type('no')
      await page.keyboard.press('Enter')
      await page.getByRole('row').filter({ hasText: node }).waitFor()
      await page.keyboard.press('/')
      await page.keyboard.type(node)
      await page.keyboard.press('Enter')
      await page.keyboard.press('j')
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'Cordon', exact: true }).waitFor()
      await page.keyboard.press('c')
      await page.getByRole('button', { name: 'Uncordon' }).waitFor()
      assert.equal(await fieldOf(cluster, ['node', node], '{.spec.unschedulable}'), 'true')
      await page.keyboard.press('c')
      await page.getByRole('button', { name: 'Cordon', exact: true }).waitFor()
      assert.equal(await fieldOf(cluster, ['node', node], '{.spec.unschedulable}'), '')
    },
  },
  {
    name: 'ARC-16 by keyboard alone, the content is reached without the menu',
    run: async ({ page, open }) => {
      await open('#/overview?ns=default')
      await tabTo(page, 'Skip to the content')
      await page.keyboard.press('Enter')
      assert.equal(await page.evaluate('document.activeElement?.id'), 'main')
    },
  },
]

const colors: readonly Flow[] = [
  {
    name: 'ARC-16 a page that is open follows a system that turns dark, its charts included',
    run: async ({ page, open }) => {
      await open('#/usage')
      const canvas = page.getByRole('article', { name: 'Nodes, CPU, cores' }).locator('canvas')
      await canvas.waitFor()
      const picture = () => canvas.evaluate((element: { toDataURL(): string }) => element.toDataURL())
      await page.emulateMedia({ colorScheme: 'light' })
      await page.waitForTimeout(200)
      const light = await picture()
      await page.emulateMedia({ colorScheme: 'dark' })
      await page.waitForTimeout(200)
      assert.notEqual(await picture(), light)
    },
  },
  {
    name: 'ARC-16 an autoscaler is shown between its bounds, and leads to its reasons',
    run: async ({ page, open }) => {
      await open('#/usage?ns=default')
      const autoscalers = page.getByRole('region', { name: 'Autoscalers' })
      await autoscalers.getByRole('img', { name: /between 2 and 4$/ }).waitFor()
      await autoscalers.getByRole('link', { name: 'default/web' }).click()
      await page.getByRole('heading', { name: 'HorizontalPodAutoscaler web' }).waitFor()
    },
  },
]

const rights: readonly Flow[] = [
  asLooker('ARC-16 a user without the right to list namespaces begins in one, and sees its pods', async (page) => {
    await page.getByRole('link', { name: 'Pod', exact: true }).click()
    await page.getByRole('row').filter({ hasText: 'huge' }).waitFor()
    assert.equal(await page.getByLabel('Namespace').inputValue(), 'default')
  }),
  asLooker('ARC-16 a user without the right to delete gets the server’s refusal, and the object stays', async (page, { served, cluster }) => {
    await page.goto(`${served.origin}/#/object/configmaps/default/prices/summary`)
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('cannot delete resource "configmaps"').waitFor()
    assert.equal(await fieldOf(cluster, ['cm', 'prices'], '{.metadata.name}'), 'prices')
  }),
  asLooker('ARC-16 a user without the right to write keeps the text that the server refuses', async (page, { served }) => {
    await page.goto(`${served.origin}/#/object/configmaps/default/prices/yaml`)
    await editor(page).getByText('tea', { exact: true }).click()
    await page.keyboard.press('End')
    await page.keyboard.insertText(' # mine')
    await page.getByRole('button', { name: 'Check' }).click()
    await page.getByText(/cannot (update|patch) resource "configmaps"/).waitFor()
    await editor(page).getByText('# mine').waitFor()
  }),
  asLooker('ARC-16 a user without the right to logs gets the server’s refusal in place of the log', async (page, { served, cluster }) => {
    await page.goto(`${served.origin}/#/object/pods/default/${await podOf(cluster, 'web')}/logs`)
    await page.getByText('cannot get resource "pods/log"').waitFor()
  }),
  asLooker('ARC-16 a user without the right to metrics gets the server’s refusal in place of the charts', async (page, { served }) => {
    await page.goto(`${served.origin}/#/usage`)
    await page.getByRole('heading', { name: 'Usage' }).waitFor()
    await page.getByText('nodes.metrics.k8s.io is forbidden').waitFor()
  }),
  asLooker('ARC-16 a user without the right to scale gets the server’s refusal', async (page, { served, cluster }) => {
    await page.goto(`${served.origin}/#/object/deployments.apps/default/web/summary`)
    await page.getByRole('button', { name: 'Scale' }).click()
    await page.getByLabel('Replicas').fill('9')
    await page.getByRole('dialog').getByRole('button', { name: 'Scale' }).click()
    await page.getByText('cannot patch resource "deployments/scale"').waitFor()
    assert.equal(await fieldOf(cluster, ['deployment', 'web'], '{.spec.replicas}'), '2')
  }),
]

const restart: readonly Flow[] = [
  {
    name: 'ARC-16 a text that is being edited survives a restart of the server, and is saved afterwards',
    run: async ({ page, open, cluster }) => {
      await cluster.must(['create', 'configmap', 'slow', '--from-literal=a=one'])
      await open('#/object/configmaps/default/slow/yaml')
      await editor(page).getByText('one').click()
      await page.keyboard.press('End')
      await page.keyboard.insertText('-changed')
      await cluster.skiff(['stop', cluster.name])
      await page.getByText('connecting again').first().waitFor()
      const start = await cluster.skiff(['start', cluster.name])
      assert.equal(start.code, 0, start.stderr)
      await page.getByText('connecting again').first().waitFor({ state: 'detached', timeout: 60_000 })
      await editor(page).getByText('one-changed').waitFor()
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByText('slow is changed').waitFor()
      assert.equal(await fieldOf(cluster, ['cm', 'slow'], '{.data.a}'), 'one-changed')
    },
  },
]

runFlows('e2e-ui-tasks', ['--simulated-nodes', '3', '--history', '1h'], setUp, [...phone, ...keyboard, ...colors, ...rights, ...restart])
