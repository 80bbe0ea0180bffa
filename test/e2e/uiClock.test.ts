/** The clock of a cluster under virtual time in the page of `skiff ui` (X3, ARC-16): it is stopped, run and moved on, in Chromium over a cluster of this process. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { clusterRoleBindings, clusterRoles, cronJobs, jobs, pods, serviceAccounts } from '#client/builtIn'
import { createHttpTransport } from '#client/httpTransport'
import { startCluster, type TestCluster } from '#testing/cluster'
import { realClock } from '#testing/realClock'
import { complaintsOf, launch, obstacleToPage, type ServedPage, servePage } from './support/browser.ts'
import { eventually } from './support/localCluster.ts'
import { checkView } from './support/viewFlow.ts'

const skip = obstacleToPage()
const options = { skip }
const view = '#/chaos?ns=default'
const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'example.com/job:1' }] } }

let directory: string
let cluster: TestCluster
let served: ServedPage
let browser: Browser
let context: BrowserContext
let complaints: string[]

before(async () => {
  if (skip) return
  directory = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-ui-clock-'))
  cluster = await startCluster({ nodes: 2, start: '2026-01-01T00:00:00Z' })
  const kubeconfig = path.join(directory, 'kubeconfig')
  await fs.writeFile(kubeconfig, await cluster.kubeconfig(), { mode: 0o600 })
  served = await servePage({ env: { ...process.env, HOME: directory, SKIFF_HOME: directory } }, ['--kubeconfig', kubeconfig])
  browser = await launch()
  context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  context.setDefaultTimeout(20_000)
  complaints = complaintsOf(context)
  const first = await context.newPage()
  await first.goto(served.url)
  await first.getByRole('heading', { name: 'Overview' }).waitFor()
})

after(async () => {
  await browser?.close()
  await served?.end()
  await cluster?.close()
  if (directory) await fs.rm(directory, { recursive: true })
})

const clockOf = (page: Page) => page.getByRole('region', { name: 'Clock' })
const timeOf = async (page: Page) => Date.parse((await clockOf(page).locator('strong').textContent()) ?? '')
const phaseOf = async (name: string) => (await cluster.client.of(pods).get({ namespace: 'default', name })).status?.phase

async function visit(address: string): Promise<Page> {
  const page = await context.newPage()
  await page.goto(`${served.origin}/${address}`)
  await page.locator('main h1').first().waitFor()
  return page
}

test(
  'X3 the page shows that the time of a cluster stands still, and a minute that passes in it starts a pod, whose age is of the cluster’s time',
  options,
  async () => {
    await cluster.client
      .of(pods)
      .create({ metadata: { namespace: 'default', name: 'web' }, spec: { containers: [{ name: 'main', image: 'example.com/web:1' }] } })
    const page = await visit(view)
    await clockOf(page).getByText('stands still').waitFor()
    const began = await timeOf(page)
    assert.ok(began > 0 && (await phaseOf('web')) === 'Pending')
    await page.keyboard.press('.')
    await eventually(
      'a minute more',
      20_000,
      () => timeOf(page),
      (now) => now >= began + 60_000,
    )
    await clockOf(page).getByText('stands still').waitFor()
    assert.equal(await timeOf(page), began + 60_000)
    assert.equal(await phaseOf('web'), 'Running')
    await page.goto(`${served.origin}/#/list/pods?ns=default`)
    const row = page.getByRole('row').filter({ hasText: 'web' })
    await row.getByText('Running').waitFor()
    await row.getByText(/^6\ds$/).waitFor()
    assert.deepEqual(complaints, [])
    await page.close()
  },
)

test('X3 the clock runs at the speed that is chosen, by keyboard too, and stops', options, async () => {
  await cluster.client.of(cronJobs).create({
    metadata: { namespace: 'default', name: 'often' },
    spec: { schedule: '*/5 * * * *', successfulJobsHistoryLimit: 10, jobTemplate: { spec: { template } } },
  })
  const page = await visit(view)
  await clockOf(page).getByLabel('Speed').selectOption({ label: '600 times as fast' })
  await clockOf(page).getByRole('button', { name: 'Run' }).click()
  await clockOf(page).getByText('passes up to 600 times as fast').waitFor()
  const made = async () => (await cluster.client.of(jobs).list({ namespace: 'default' })).items.length
  await eventually('two Jobs', 60_000, made, (count) => count >= 2)
  await clockOf(page).getByRole('heading', { name: 'Clock' }).click()
  await page.keyboard.press('p')
  await clockOf(page).getByText('stands still').waitFor()
  const stopped = await timeOf(page)
  await page.waitForTimeout(1_500)
  assert.equal(await timeOf(page), stopped)
  await page.close()
})

test('X3 a user who may read the clock and not move it gets the server’s refusal, and the time stands still', options, async () => {
  const { url, ca, token } = await cluster.listen()
  const admin = createHttpTransport({ server: url, tls: { ca }, bearerToken: token, clock: realClock })
  await cluster.client.of(serviceAccounts).create({ metadata: { namespace: 'default', name: 'watcher' } })
  const rules = [
    { nonResourceURLs: ['/skiff/clock'], verbs: ['get'] },
    { apiGroups: [''], resources: ['nodes', 'pods', 'namespaces'], verbs: ['get', 'list', 'watch'] },
  ]
  await cluster.client.of(clusterRoles).create({ metadata: { name: 'watcher' }, rules })
  await cluster.client.of(clusterRoleBindings).create({
    metadata: { name: 'watcher' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'watcher' },
    subjects: [{ kind: 'ServiceAccount', namespace: 'default', name: 'watcher' }],
  })
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
  const answer = await admin.request({ method: 'POST', path: '/api/v1/namespaces/default/serviceaccounts/watcher/token', body })
  await admin.close()
  const own = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  own.setDefaultTimeout(20_000)
  const page = await own.newPage()
  await page.goto(`${served.origin}/${view}`)
  await page.getByLabel('Address or token').fill((answer.body as unknown as { readonly status: { readonly token: string } }).status.token)
  await page.keyboard.press('Enter')
  await clockOf(page).getByText('stands still').waitFor()
  const before = await timeOf(page)
  await clockOf(page).getByRole('button', { name: '1 hour' }).click()
  await page.getByText('cannot post path "/skiff/clock"').waitFor()
  assert.equal(await timeOf(page), before)
  await own.close()
})

test('X3 the view with the clock fits a phone, and has no serious barrier, light and dark', options, async () => {
  const page = await visit(view)
  await clockOf(page).getByRole('button', { name: '1 day' }).waitFor()
  await checkView(page)
  await page.close()
})
