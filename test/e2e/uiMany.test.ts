/** The page of `skiff ui` with 5,000 pods (ARC-16): lists, searches and the overview draw what is in sight, and nothing else. */
import assert from 'node:assert/strict'
import { eventually, type LocalCluster } from './support/localCluster.ts'
import { type Flow, runFlows } from './support/pageFlows.ts'

const pods = 5_000

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: crowd}
spec:
  replicas: ${pods}
  selector: {matchLabels: {app: crowd}}
  template:
    metadata: {labels: {app: crowd}}
    spec: {containers: [{name: main, image: example.com/crowd:1}]}
`

async function setUp(cluster: LocalCluster): Promise<void> {
  await cluster.mustWith(deployment, ['apply', '-f', '-'])
  const ready = () => cluster.must(['get', 'deployment', 'crowd', '-o', 'jsonpath={.status.readyReplicas}'])
  await eventually('5,000 ready pods', 300_000, ready, (text) => Number(text) === pods)
}

const flows: Flow[] = [
  {
    name: 'ARC-16 a list of 5,000 pods draws the rows in sight, moves to its end, and is searched',
    run: async ({ page, open }) => {
      await open('#/list/pods?ns=default')
      await page.getByRole('status').getByText('5000', { exact: true }).waitFor()
      const drawn = async () => page.getByRole('row').count()
      assert.ok((await drawn()) < 80, `${await drawn()} rows are drawn`)
      assert.equal(await page.getByRole('grid').getAttribute('aria-rowcount'), '5001')
      await page.keyboard.press('End')
      await page.locator('[aria-rowindex="5001"][aria-selected="true"]').waitFor()
      assert.ok((await drawn()) < 80)
      const name = await page.locator('[aria-rowindex="5001"]').getByRole('link').textContent()
      await page.keyboard.press('/')
      await page.keyboard.type(name ?? '')
      await page.getByRole('status').getByText('1 of 5000').waitFor()
      await page.keyboard.press('Escape')
      await page.keyboard.press('k')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: `Pod ${name}` }).waitFor()
    },
  },
  {
    name: 'ARC-16 the list follows while a thousand pods are deleted',
    run: async ({ page, open, cluster }) => {
      await open('#/list/pods?ns=default')
      await page.getByRole('status').getByText('5000', { exact: true }).waitFor()
      await cluster.must(['scale', 'deployment/crowd', `--replicas=${pods - 1_000}`])
      await page.getByRole('status').getByText('4000', { exact: true }).waitFor({ timeout: 120_000 })
    },
  },
  {
    name: 'ARC-16 the overview counts all of them',
    run: async ({ page, open }) => {
      await open('#/overview?ns=default')
      await page.getByRole('article', { name: 'Pod', exact: true }).getByText('4000').waitFor()
    },
  },
]

runFlows('e2e-ui-many', ['--simulated-nodes', '50'], setUp, flows)
