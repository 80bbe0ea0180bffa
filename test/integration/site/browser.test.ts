/** The site in a browser, opened from the disk: the search finds and opens pages, both color schemes can be read, and a phone shows all of it. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { complaintsOf, fitsWidth, launch, obstacleToPage } from '../../e2e/support/browser.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const skip = obstacleToPage()
const options = { skip, timeout: 60_000 }
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-site-'))
const axe = skip ? '' : fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
let browser: Browser

before(async () => {
  if (skip) return
  execFileSync(process.execPath, [path.join(root, 'scripts/site/build.mjs'), directory])
  browser = await launch()
})
after(async () => {
  await browser?.close()
  fs.rmSync(directory, { recursive: true })
})

const address = (name: string) => pathToFileURL(path.join(directory, name)).href

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  const found = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as { violations: { id: string; nodes: { html: string }[] }[] }
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' ')}`)
}

test('LRN-01 the search of the site finds a section by keyboard, without a server or a network', options, async () => {
  const context = await browser.newContext({ offline: true })
  const complaints = complaintsOf(context)
  const page = await context.newPage()
  await page.goto(address('learn/apply.html'))
  await page.keyboard.press('/')
  await page.keyboard.type('revision oldest history')
  await page.waitForSelector('#results li')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.waitForURL(/\.html#/)
  await page.goto(address('index.html'))
  await page.fill('#search', 'workqueueoptions')
  await page.waitForSelector('#results li')
  await page.keyboard.press('Enter')
  await page.waitForURL(/reference\/library-client\.html#workqueueoptions$/)
  assert.deepEqual(complaints, [])
  await context.close()
})

for (const colorScheme of ['light', 'dark'] as const) {
  test(`LRN-01 pages of the site pass axe and fit a phone, in ${colorScheme} colors`, options, async () => {
    const context = await browser.newContext({ colorScheme, viewport: { width: 390, height: 844 } })
    const page = await context.newPage()
    for (const name of ['index.html', 'learn/apply.html', 'comparison.html', 'reference/library-client.html']) {
      await page.goto(address(name))
      assert.ok(await fitsWidth(page), `${name} is wider than the window`)
      // The reference is long, and its parts are all alike.
      if (!name.startsWith('reference/')) assert.deepEqual(await violations(page), [], name)
    }
    await context.close()
  })
}

test('LRN-01 the colors of the site can be chosen, and stay on the next page', options, async () => {
  const context = await browser.newContext({ colorScheme: 'light' })
  const page = await context.newPage()
  await page.goto(address('index.html'))
  const ground = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
  const light = await ground()
  await page.click('#theme')
  await page.click('#theme')
  assert.notEqual(await ground(), light)
  await page.goto(address('quick-start.html'))
  assert.notEqual(await ground(), light)
  await context.close()
})
