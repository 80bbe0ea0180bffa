/** A flow for any view of the page: it fits a window and a phone, light and dark, and axe finds no serious barrier. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { fitsWidth } from './browser.ts'
import type { Flow } from './pageFlows.ts'

const axe = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Serious findings of axe, in words. */
async function barriers(page: Page): Promise<string[]> {
  const { violations } = (await page.evaluate(`axe.run({ resultTypes: ['violations'] })`)) as {
    violations: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[]
  }
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.slice(0, 3).map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary.split('\n')[1]?.trim()}`))
}

/** @param view the address without `#/` */
export function viewFlow(view: string): Flow {
  return {
    name: `ARC-16 ${view} fits a phone, and has no serious barrier, light and dark`,
    run: async ({ page, open }) => {
      await open(`#/${view}`)
      await page.locator('main [role=status], main .panel, main .card').first().waitFor()
      await checkView(page)
    },
  }
}

export async function checkView(page: Page): Promise<void> {
  await page.evaluate(axe)
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 844 })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      assert.deepEqual(await barriers(page), [], `${width} ${colorScheme}`)
    }
    assert.ok(await fitsWidth(page), `the page is wider than ${width}`)
  }
}
