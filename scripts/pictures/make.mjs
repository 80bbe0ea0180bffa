#!/usr/bin/env node
/**
 * Takes the pictures of the page in docs/ from a simulated cluster with Debian's Chromium. Needs `make build test-packages`.
 *
 *   node scripts/pictures/make.mjs [docs]
 *   node scripts/pictures/make.mjs --all DIR [--state full|empty|many] [--only VIEW,VIEW]
 *   --all     every view as four pictures, wide and narrow, light and dark, to be looked at
 *   --state   full: the content of docs/; empty: a cluster without workloads; many: 5,000 pods
 */
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { startCluster } from './cluster.mjs'
import { content, crowd } from './content.mjs'
import { smaller } from './smallerPng.mjs'
import { viewsOf } from './views.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { all: { type: 'string' }, state: { type: 'string', default: 'full' }, only: { type: 'string' } },
})
const many = 5_000
const wide = { width: 1280, height: 800 }
const narrow = { width: 390, height: 844 }
const flags = { full: ['--simulated-nodes', '4', '--history', '1h'], empty: ['--simulated-nodes', '0'], many: ['--simulated-nodes', '50', '--history', '1h'] }
const only = values.only?.split(',')

const cluster = await startCluster('lab', flags[values.state])
try {
  const names = await fill()
  const served = await cluster.page()
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] })
  try {
    await takeAll(browser, served.url, names)
  } finally {
    await browser.close()
    await served.end()
  }
} finally {
  await cluster.remove()
}

async function fill() {
  if (values.state === 'empty') return { pod: 'none', node: 'none', revision: '1' }
  await cluster.apply(content)
  for (const [item, price] of [
    ['tea', '3.40'],
    ['coffee', '3.10'],
    ['tea', '3.60'],
  ])
    await cluster.kubectl('patch', 'cm', 'prices', '-p', JSON.stringify({ data: { [item]: price } }))
  await cluster.kubectl('rollout', 'status', 'deployment/shop', '--timeout=60s')
  if (values.state === 'many') {
    await cluster.apply(crowd(many))
    await cluster.kubectl('rollout', 'status', 'deployment/crowd', '--timeout=600s')
  }
  const pod = await cluster.kubectl('get', 'pods', '-l', 'app=shop', '-o', 'jsonpath={.items[0].metadata.name}')
  const node = await cluster.kubectl('get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}')
  const revision = await cluster.kubectl('get', 'service', 'checkout', '-o', 'jsonpath={.metadata.resourceVersion}')
  const last = (await cluster.kubectl('get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}')).split(' ').at(-1)
  await cluster.kubectl('cordon', last)
  await cluster.kubectl('delete', 'namespace', 'leaving', '--wait=false')
  return { pod, node, revision }
}

async function takeAll(browser, url, names) {
  const context = await browser.newContext({ viewport: wide })
  const first = await context.newPage()
  await first.goto(url)
  await first.getByRole('heading', { name: 'Overview' }).waitFor()
  const { origin } = new URL(url)
  const directory = path.resolve(values.all ?? positionals[0] ?? 'docs')
  fs.mkdirSync(directory, { recursive: true })
  const views = viewsOf(names).filter(({ name, picture }) => (only ? only.includes(name) : values.all !== undefined || picture))
  for (const view of views) {
    const page = await context.newPage()
    await page.goto(`${origin}/#/${view.address}`)
    await page.locator('main h1').first().waitFor()
    await sleep(4_000)
    if (view.creates && values.state !== 'empty') await show(page, view.creates)
    if (values.all === undefined) {
      await sleep(1_500)
      fs.writeFileSync(path.join(directory, `ui-${view.name}.png`), smaller(await page.screenshot()))
    } else await fourOf(page, path.join(directory, view.name))
    console.log(view.name)
    await page.close()
  }
}

/** A view that records shows the creation of a pod. */
async function show(page, name) {
  const spec = { containers: [{ name: 'main', image: `example.com/${name}:1` }] }
  await cluster.create({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec })
  await page
    .getByRole('button', { name: `create pods default/${name}` })
    .first()
    .click()
  await sleep(3_000)
  await page.evaluate("document.getElementById('main').scrollTo(0, 0)")
}

async function fourOf(page, file) {
  for (const [size, viewport] of Object.entries({ wide, narrow })) {
    await page.setViewportSize(viewport)
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme })
      await sleep(700)
      fs.writeFileSync(`${file}-${size}-${colorScheme}.png`, await page.screenshot())
    }
  }
}
