/** The page of `skiff ui` with 100,000 objects and a log of 10,000,000 lines (ARC-16, X9): it answers keys while they come, and draws what is in sight. */
import assert from 'node:assert/strict'
import type { Page, Route } from 'playwright-core'
import { type Flow, runFlows } from './support/pageFlows.ts'

const objects = 100_000
const lines = 10_000_000
/** Lines that arrive at once. */
const step = 5_000
/** Counts the frames that the page draws from now on; the longest time without one is read by `longestStill`. */
const watchFrames = (page: Page) =>
  page.evaluate(`(() => {
    let last = performance.now()
    window.longestStill = 0
    const frame = () => {
      const now = performance.now()
      window.longestStill = Math.max(window.longestStill, now - last)
      last = now
      requestAnimationFrame(frame)
    }
    requestAnimationFrame(frame)
  })()`)

/** How long one sort of 100,000 names by the rules of a language takes here and now: a page that does nothing for that long feels stuck. */
const languageSort = `(() => {
  const names = Array.from({ length: ${objects} }, (_, at) => 'default/object-' + at * 7919 % ${objects})
  const collator = new Intl.Collator('en', { numeric: true })
  const started = performance.now()
  names.sort((one, other) => collator.compare('default', 'default') || collator.compare(one, other))
  return performance.now() - started
})()`

async function assertNeverStill(page: Page): Promise<void> {
  const still = await page.evaluate<number>('window.longestStill')
  const most = Math.max(250, await page.evaluate<number>(languageSort))
  assert.ok(still < most, `the page drew nothing for ${Math.round(still)} ms, at most ${Math.round(most)} ms are accepted`)
}

const columns = [
  { name: 'Name', type: 'string', format: 'name', priority: 0 },
  { name: 'Data', type: 'string', priority: 0 },
  { name: 'Age', type: 'string', priority: 0 },
]

/** A page of the server's table, as it comes for `limit` and `continue`. */
function answerList(route: Route): Promise<void> {
  const { searchParams } = new URL(route.request().url())
  const [start, limit] = [Number(searchParams.get('continue') ?? 0), Number(searchParams.get('limit'))]
  const rows = Array.from({ length: Math.min(limit, objects - start) }, (_, at) => {
    const name = `object-${((start + at) * 7919) % objects}`
    return { cells: [name, '1', '5m'], object: { metadata: { name, namespace: 'default', uid: name, creationTimestamp: '2026-01-01T00:00:00Z' } } }
  })
  const token = start + limit < objects ? { continue: String(start + limit) } : {}
  return route.fulfill({
    json: { kind: 'Table', apiVersion: 'meta.k8s.io/v1', metadata: { resourceVersion: '1', ...token }, columnDefinitions: columns, rows },
  })
}

const row = (name: string) => ({
  cells: [name, '2', '1s'],
  object: { metadata: { name, namespace: 'default', uid: name, creationTimestamp: '2026-01-01T00:00:00Z' } },
})

/** In place of the WebSocket of a log: so many lines as fast as the page takes them. */
const floodOfLines = (count: number) => `(() => {
  const Plain = window.WebSocket
  window.WebSocket = class extends EventTarget {
    constructor(url, protocols) {
      if (!url.includes('/log?')) return new Plain(url, protocols)
      super()
      const encode = (text) => new TextEncoder().encode(text).buffer
      const some = encode(Array.from({ length: ${step} }, (_, at) => 'line ' + at + ' of the flood\\n').join(''))
      let sent = 0
      const send = () => {
        sent += ${step}
        this.onmessage?.({ data: some })
        if (sent < ${count}) setTimeout(send, 0)
        else this.onmessage?.({ data: encode('the last line\\n') })
      }
      setTimeout(() => {
        this.onopen?.()
        send()
      }, 100)
    }
    close() {}
  }
})()`

const flows: Flow[] = [
  {
    name: 'ARC-16 a list of 100,000 objects is searched and moved through, and follows changes, without standing still',
    run: async ({ page, open }) => {
      let send: (event: object) => void = () => {}
      await page.route(/\/api\/v1\/namespaces\/default\/configmaps\?limit/, answerList)
      await page.routeWebSocket(/configmaps\?watch/, (socket) => {
        send = (event) => socket.send(JSON.stringify(event))
      })
      await open('#/list/configmaps?ns=default')
      await page.getByRole('status').getByText(String(objects), { exact: true }).waitFor({ timeout: 120_000 })
      await watchFrames(page)
      assert.equal(await page.getByRole('row').nth(1).getByRole('link').textContent(), 'object-0')
      await page.keyboard.press('End')
      await page.getByRole('link', { name: `object-${objects - 1}`, exact: true }).waitFor()
      await page.keyboard.press('/')
      await page.keyboard.type('object-4242', { delay: 20 })
      await page.getByRole('status').getByText(`11 of ${objects}`).waitFor()
      await page.getByRole('searchbox').fill('')
      for (let at = 0; at < 20; at++) {
        send({ type: 'ADDED', object: { kind: 'Table', metadata: { resourceVersion: String(at + 2) }, rows: [row(`added-${at}`)] } })
        await page.waitForTimeout(50)
      }
      await page
        .getByRole('status')
        .getByText(String(objects + 20), { exact: true })
        .waitFor()
      await page.keyboard.press('Escape')
      await page.keyboard.press('Home')
      await page.getByRole('link', { name: 'added-0', exact: true }).waitFor()
      assert.ok((await page.getByRole('row').count()) < 80)
      await assertNeverStill(page)
    },
  },
  {
    name: 'ARC-16 a log of 10,000,000 lines is followed and searched while they come, keeps the last ones, and says how many it dropped',
    run: async ({ page, open, cluster }) => {
      await cluster.mustWith(JSON.stringify(pod), ['create', '-f', '-'])
      await cluster.must(['wait', '--for=condition=Ready', 'pod/flood', '--timeout=60s'])
      await page.addInitScript(floodOfLines(lines))
      await open('#/object/pods/default/flood/logs')
      await page
        .getByRole('log')
        .getByText(/of the flood/)
        .first()
        .waitFor()
      await watchFrames(page)
      await page.getByLabel('Search in the log').fill('7 of the flood')
      await page.getByRole('log').locator('mark').first().waitFor()
      await page.getByRole('log').getByText('the last line').waitFor({ timeout: 300_000 })
      await page.getByText(/\d{6} lines, 9[78]\d{5} older ones dropped/).waitFor()
      assert.ok((await page.getByRole('log').locator('pre > div').count()) < 200)
      await assertNeverStill(page)
    },
  },
]

const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'flood' }, spec: { containers: [{ name: 'main', image: 'example.com/flood:1' }] } }

runFlows('e2e-ui-huge', ['--simulated-nodes', '1'], async () => {}, flows)
