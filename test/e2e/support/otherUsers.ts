/** Flows of users other than the administrator: each logs in with a token of a ServiceAccount, in a browser context of its own. */
import type { Page } from 'playwright-core'
import { complaintsOf } from './browser.ts'
import type { Flow } from './pageFlows.ts'

/** @param account a ServiceAccount of the namespace default */
export function asUser(account: string, { name, run }: Flow): Flow {
  return {
    name,
    run: async (visit) => {
      const { browser, cluster, served } = visit
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
      context.setDefaultTimeout(20_000)
      const complaints = complaintsOf(context)
      const page = await context.newPage()
      await logIn(page, served.origin, await cluster.must(['create', 'token', account]))
      await page.getByText(`system:serviceaccount:default:${account}`, { exact: true }).waitFor()
      const open = async (address: string) => {
        await page.goto(`${served.origin}/${address}`)
        await page.locator('main h1').first().waitFor()
      }
      try {
        await run({ ...visit, page, context, open })
        if (complaints.length > 0) throw new Error(complaints.join('\n'))
      } finally {
        await context.close()
      }
    },
  }
}

/** With the keyboard, as a user does it. */
async function logIn(page: Page, origin: string, token: string): Promise<void> {
  await page.goto(origin)
  await page.getByLabel('Address or token').fill(token)
  await page.keyboard.press('Enter')
}
