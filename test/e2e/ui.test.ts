/** The page of `skiff ui` in Chromium (ARC-16, ARC-17): logging in and out, lists that are live, the keyboard, phones, and text that is hostile. */
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { complaintsOf, servePage } from './support/browser.ts'
import type { LocalCluster } from './support/localCluster.ts'
import { type Flow, runFlows } from './support/pageFlows.ts'
import { viewFlow } from './support/viewFlow.ts'

const markup = '<img src=x onerror=alert(1)><script>alert(2)</script>'

const objects = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    additionalPrinterColumns: [{name: Captain, type: string, jsonPath: .spec.captain}]
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: hostile
  annotations: {note: "${markup}", escape: "\\u001b[31mred\\u202e"}
data: {page: "${markup}"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {skiff.dev/simulated-logs: "hello from web"}
    spec: {containers: [{name: main, image: example.com/web:1}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: chatty
  annotations: {skiff.dev/simulated-logs: "plain line\\n${markup}\\n\\u001b[31mred line\\u001b[0m\\nneedle in the log"}
spec: {containers: [{name: main, image: example.com/chatty:1}]}
---
apiVersion: v1
kind: Pod
metadata: {name: huge}
spec: {containers: [{name: main, image: example.com/huge:1, resources: {requests: {cpu: "100"}}}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: imageless
  annotations: {skiff.dev/simulated-pull-error: "no such image ${markup}"}
spec: {containers: [{name: main, image: example.com/none:1}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: viewer}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: pods-only}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: pods-only}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: pods-only}
subjects: [{kind: ServiceAccount, name: viewer, namespace: default}]
`

async function setUp(cluster: LocalCluster): Promise<void> {
  await cluster.mustWith(objects, ['apply', '-f', '-'])
  await cluster.must(['wait', '--for=condition=Established', 'crd/boats.example.com'])
  const boat = { apiVersion: 'example.com/v1', kind: 'Boat', metadata: { name: 'skiff' }, spec: { captain: markup } }
  await cluster.mustWith(JSON.stringify(boat), ['apply', '-f', '-'])
  await cluster.must(['rollout', 'status', 'deployment/web', '--timeout=60s'])
}

const rowOf = (page: Page, name: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) })
const flows: Flow[] = [
  {
    name: 'ARC-16 the code leaves the address, and no secret is in the address or in local storage',
    run: async ({ page, open }) => {
      await open('')
      const [address, stored] = (await page.evaluate('[location.href, JSON.stringify(localStorage)]')) as [string, string]
      assert.doesNotMatch(address, /code|token/)
      assert.doesNotMatch(stored, /key|token|code/i)
      assert.equal(await page.evaluate('document.cookie'), '', 'scripts do not see the cookie')
    },
  },
  {
    name: 'ARC-16 a code that was used is refused with the way to get another',
    run: async ({ browser, served }) => {
      const context = await browser.newContext()
      const page = await context.newPage()
      await page.goto(served.url)
      await page.getByText('this code is wrong, used or expired').waitFor()
      await context.close()
    },
  },
  {
    name: 'ARC-16 a token logs in with the rights of its user alone, and refusals are the server’s words',
    run: async ({ browser, cluster, served }) => {
      const token = await cluster.must(['create', 'token', 'viewer'])
      const context = await browser.newContext()
      const complaints = complaintsOf(context)
      const page = await context.newPage()
      await page.goto(served.origin)
      await page.getByLabel('Address or token').fill(token)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByText('system:serviceaccount:default:viewer', { exact: true }).waitFor()
      await page.goto(`${served.origin}/#/list/secrets`)
      await page.getByText('secrets is forbidden: User "system:serviceaccount:default:viewer" cannot list resource "secrets"').waitFor()
      await page.goto(`${served.origin}/#/list/pods?ns=default`)
      await rowOf(page, 'chatty').waitFor()
      assert.deepEqual(complaints, [])
      await context.close()
    },
  },
  {
    name: 'ARC-16 a token that the cluster does not know is refused',
    run: async ({ browser, served }) => {
      const context = await browser.newContext()
      const page = await context.newPage()
      await page.goto(served.origin)
      await page.getByLabel('Address or token').fill('nonsense')
      await page.keyboard.press('Enter')
      await page.getByText('the cluster does not accept this token').waitFor()
      await context.close()
    },
  },
  {
    name: 'ARC-16 a second tab is logged in by the first, and stays so when it is loaded again',
    run: async ({ page, open }) => {
      await open('')
      await page.reload()
      await page.getByRole('heading', { name: 'Overview' }).waitFor()
    },
  },
  {
    name: 'ARC-16 logging out ends the session in all tabs',
    run: async ({ browser, cluster }) => {
      const served = await servePage(cluster)
      const context = await browser.newContext()
      const [one, other] = [await context.newPage(), await context.newPage()]
      await one.goto(served.url)
      await one.getByRole('heading', { name: 'Overview' }).waitFor()
      await other.goto(served.origin)
      await other.getByRole('button', { name: 'Log out' }).click()
      await one.getByLabel('Address or token').waitFor()
      await context.close()
      await served.end()
    },
  },
  {
    name: 'ARC-16 the overview names what is broken with the words of its last warning',
    run: async ({ page, open }) => {
      await open('#/overview?ns=*')
      const pods = page.getByRole('article', { name: 'Pod', exact: true })
      await pods.getByText('imageless').waitFor()
      await pods.getByText(/no such image <img src=x/).waitFor()
      await page.getByRole('article', { name: 'Deployment', exact: true }).getByText('all healthy').waitFor()
    },
  },
  {
    name: 'ARC-16 a list shows the server’s columns, also of a custom resource, whose values are text',
    run: async ({ page, open }) => {
      await open('#/list/boats.example.com?ns=default')
      await page.getByRole('columnheader', { name: 'Captain' }).waitFor()
      await rowOf(page, 'skiff').getByText(markup).waitFor()
    },
  },
  {
    name: 'ARC-16 an object that is created, changed and deleted elsewhere appears, changes and goes in the list',
    run: async ({ page, open, cluster }) => {
      await open('#/list/configmaps?ns=default')
      await rowOf(page, 'hostile').waitFor()
      await cluster.must(['create', 'configmap', 'fresh', '--from-literal=a=1'])
      await rowOf(page, 'fresh').waitFor()
      await cluster.must(['patch', 'configmap', 'fresh', '-p', '{"data":{"b":"2"}}'])
      await rowOf(page, 'fresh').getByRole('gridcell', { name: '2', exact: true }).waitFor()
      await cluster.must(['delete', 'configmap', 'fresh'])
      await rowOf(page, 'fresh').waitFor({ state: 'detached' })
    },
  },
  {
    name: 'ARC-16 the keyboard alone goes to a kind, searches, opens an object and its parts, and goes back',
    run: async ({ page, open }) => {
      await open('#/overview?ns=default')
      await page.keyboard.press('g')
      await page.keyboard.type('po')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Pod', exact: true }).waitFor()
      await rowOf(page, 'chatty').waitFor()
      await page.keyboard.press('/')
      await page.keyboard.type('chat')
      await rowOf(page, 'huge').waitFor({ state: 'detached' })
      await page.keyboard.press('Escape')
      await page.keyboard.press('j')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Pod chatty' }).waitFor()
      await page.keyboard.press('3')
      await page.getByRole('list', { name: 'Events' }).getByText('Scheduled').waitFor()
      await page.keyboard.press('u')
      await page.getByRole('heading', { name: 'Pod', exact: true }).waitFor()
    },
  },
  {
    name: 'ARC-16 j and k move the selection, and keys that are typed into a field do nothing else',
    run: async ({ page, open }) => {
      await open('#/list/pods?ns=default')
      await rowOf(page, 'chatty').waitFor()
      for (const key of ['j', 'j', 'k']) await page.keyboard.press(key)
      assert.equal(await page.getByRole('row', { selected: true }).getAttribute('aria-rowindex'), '2')
      await page.getByRole('searchbox').fill('')
      await page.keyboard.type('jg?')
      assert.equal(await page.getByRole('dialog').count(), 0)
      assert.equal(await page.getByRole('searchbox').inputValue(), 'jg?')
    },
  },
  {
    name: 'ARC-16 ? lists the keys of the view',
    run: async ({ page, open }) => {
      await open('#/list/pods')
      await rowOf(page, 'chatty').waitFor()
      await page.keyboard.press('?')
      await page.getByRole('dialog', { name: 'Keys' }).getByText('search in the table').waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    },
  },
  {
    name: 'ARC-16 a column sorts the rows in both directions',
    run: async ({ page, open }) => {
      await open('#/list/pods?ns=default')
      const names = () => page.getByRole('row').getByRole('link').allTextContents()
      await rowOf(page, 'chatty').waitFor()
      await page.getByRole('columnheader', { name: 'Name' }).getByRole('button').click()
      const up = await names()
      await page.getByRole('columnheader', { name: 'Name' }).getByRole('button').click()
      assert.deepEqual(await names(), up.toReversed())
      assert.equal(await page.getByRole('columnheader', { name: 'Name' }).getAttribute('aria-sort'), 'descending')
    },
  },
  {
    name: 'ARC-16 the namespace that is chosen holds in the next view',
    run: async ({ page, open }) => {
      await open('#/list/pods?ns=*')
      await page.getByLabel('Namespace').selectOption('kube-system')
      await rowOf(page, 'chatty').waitFor({ state: 'detached' })
      await page.getByRole('link', { name: 'ConfigMap', exact: true }).click()
      await rowOf(page, 'extension-apiserver-authentication').waitFor()
      assert.equal(await rowOf(page, 'hostile').count(), 0)
      await page.getByLabel('Namespace').selectOption('')
      await rowOf(page, 'hostile').waitFor()
    },
  },
  {
    name: 'ARC-16 markup and escape codes in annotations and values are text, in every part of the object’s page',
    run: async ({ page, open }) => {
      await open('#/object/configmaps/default/hostile/summary')
      await page.getByText(markup).first().waitFor()
      await page.getByRole('link', { name: 'YAML' }).click()
      await page.locator('.cm-content').getByText('onerror=alert(1)').first().waitFor()
      await page.getByRole('link', { name: 'History' }).click()
      await page.getByText('created').first().waitFor()
      assert.equal(await page.locator('img').count(), 0)
    },
  },
  {
    name: 'ARC-16 an unknown view, kind or object is named, and the object is shown once it exists',
    run: async ({ page, open, cluster }) => {
      await open('#/object/configmaps/default/later/summary')
      await page.getByRole('heading', { name: 'later does not exist' }).waitFor()
      await cluster.must(['create', 'configmap', 'later'])
      await page.getByRole('region', { name: 'About' }).waitFor()
      await page.goto(`${page.url().split('#')[0]}#/list/unicorns`)
      await page.getByText('The cluster has no unicorns.').waitFor()
      for (const view of ['nonsense', 'constructor']) {
        await page.goto(`${page.url().split('#')[0]}#/${view}`)
        await page.getByRole('heading', { name: `This page has no view ${view}` }).waitFor()
      }
    },
  },
  {
    name: 'ARC-16 light and dark are kept',
    run: async ({ page, open }) => {
      await open('')
      const ground = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
      const light = await ground()
      await page.keyboard.press('t')
      assert.notEqual(await ground(), light)
      await page.reload()
      await page.getByRole('heading', { name: 'Overview' }).waitFor()
      assert.notEqual(await ground(), light)
      await page.keyboard.press('t')
      assert.equal(await ground(), light)
    },
  },
  ...[
    'overview',
    'list/pods',
    'object/deployments.apps/default/web/summary',
    'object/pods/default/huge/why',
    'scheduling?pod=default/huge',
    'past',
    'access',
  ].map(viewFlow),
  {
    name: 'ARC-16 a phone gets the menu as an overlay',
    run: async ({ page, open }) => {
      await page.setViewportSize({ width: 390, height: 844 })
      await open('#/list/pods?ns=default')
      assert.equal(await page.getByRole('link', { name: 'Deployment', exact: true }).count(), 0)
      await page.getByRole('button', { name: 'Menu' }).click()
      await page.getByRole('link', { name: 'Deployment', exact: true }).click()
      await rowOf(page, 'web').waitFor()
      assert.equal(await page.getByRole('link', { name: 'Secret', exact: true }).count(), 0, 'the menu has closed')
    },
  },
  {
    name: 'ARC-16 the page connects again after a restart of the server, without being loaded again',
    run: async ({ page, open, cluster }) => {
      await open('#/list/configmaps?ns=default')
      await rowOf(page, 'hostile').waitFor()
      await cluster.skiff(['stop', cluster.name])
      await page.getByText('connecting again').first().waitFor()
      const start = await cluster.skiff(['start', cluster.name])
      assert.equal(start.code, 0, start.stderr)
      await cluster.must(['create', 'configmap', 'after-restart'])
      await rowOf(page, 'after-restart').waitFor({ timeout: 40_000 })
    },
  },
]

runFlows('e2e-ui', ['--simulated-nodes', '3', '--history', '1h'], setUp, flows)
