/** Runs flows through the page of `skiff ui`: one cluster and one browser for a file, a fresh tab for each flow, nothing to complain about at its end. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { complaintsOf, launch, obstacleToPage, type ServedPage, servePage } from './browser.ts'
import { LocalCluster } from './localCluster.ts'

export interface Flow {
  /** Row, subject, verb, object, condition. */
  readonly name: string
  readonly run: (at: Visit) => Promise<void>
}

export interface Visit {
  readonly page: Page
  readonly context: BrowserContext
  readonly browser: Browser
  readonly cluster: LocalCluster
  readonly served: ServedPage
  /** Opens an address of the page, such as `#/list/pods`, in the flow's tab, which is logged in by the tab that stays open. */
  open(address: string): Promise<void>
}

const patienceMs = 20_000

type SetUp = (cluster: LocalCluster) => Promise<void>

/** Over simulated nodes. */
export function runFlows(clusterName: string, flags: readonly string[], setUp: SetUp, flows: readonly Flow[]): void {
  run(obstacleToPage(), clusterName, ['--runtime', 'simulated', '--nodes', '0', ...flags], setUp, flows)
}

/** Over nodes with containerd. */
export function runFlowsOnRealNodes(clusterName: string, flags: readonly string[], setUp: SetUp, flows: readonly Flow[]): void {
  run(obstacleToPage(true), clusterName, flags, setUp, flows)
}

function run(skip: string | false, clusterName: string, flags: readonly string[], setUp: SetUp, flows: readonly Flow[]): void {
  let cluster: LocalCluster | undefined
  let served: ServedPage | undefined
  let browser: Browser | undefined
  let context: BrowserContext | undefined
  let complaints: string[] = []

  before(async () => {
    if (skip) return
    cluster = await LocalCluster.start(clusterName, flags)
    await setUp(cluster)
    served = await servePage(cluster)
    browser = await launch()
    context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
    context.setDefaultTimeout(patienceMs)
    complaints = complaintsOf(context)
    const first = await context.newPage()
    await first.goto(served.url)
    await first.getByRole('heading', { name: 'Overview' }).waitFor()
  })

  after(async () => {
    await browser?.close()
    await served?.end()
    await cluster?.delete()
  })

  for (const { name, run: go } of flows) {
    test(name, { skip }, async () => {
      if (!cluster || !served || !browser || !context) throw new Error('the page is not open')
      const page = await context.newPage()
      const { origin } = served
      const open = async (address: string) => {
        await page.goto(`${origin}/${address}`)
        await page.locator('main h1').first().waitFor()
      }
      complaints.length = 0
      try {
        await go({ page, context, browser, cluster, served, open })
        assert.deepEqual(complaints, [])
      } finally {
        await page.close()
      }
    })
  }
}
