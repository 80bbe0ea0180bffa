/** Debian's Chromium, driven by playwright-core, for tests of the page. */
import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { type LocalCluster, obstacleToCluster, skiffBin } from './localCluster.ts'

const executablePath = '/usr/bin/chromium'

/** Why the page cannot be tested here; false when it can. */
export function obstacleToPage(real = false): string | false {
  return obstacleToCluster(real) || (fs.existsSync(executablePath) ? false : 'needs chromium: make test-packages')
}

export const launch = (): Promise<Browser> => chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })

export interface ServedPage {
  /** Logs in once. */
  readonly url: string
  readonly origin: string
  end(): Promise<void>
}

/** `skiff ui` for a cluster. @param cluster whose environment names its kubeconfig and its home */
export async function servePage(cluster: Pick<LocalCluster, 'env'>, flags: readonly string[] = []): Promise<ServedPage> {
  const child = spawn(process.execPath, [skiffBin, 'ui', '--print-url', ...flags], { env: cluster.env, stdio: ['ignore', 'pipe', 'pipe'] })
  const url = await firstLine(child)
  return {
    url,
    origin: new URL(url).origin,
    end: () =>
      new Promise((resolve) => {
        child.once('exit', () => resolve())
        child.kill()
      }),
  }
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let errors = ''
    child.stderr?.on('data', (text) => {
      errors += text
    })
    child.stdout?.once('data', (text) => resolve(String(text).trim()))
    child.once('exit', (code) => reject(new Error(`skiff ui ended with ${code}: ${errors}`)))
  })
}

/** Complaints that no flow may leave behind: errors of scripts, refusals of the content security policy, and dialogs of the
 * platform, which markup would open. Chromium breaks connections when an interface of the host comes or goes, as in the tests of other clusters. */
export function complaintsOf(context: BrowserContext): string[] {
  const complaints: string[] = []
  context.on('console', (message) => {
    if (message.type() === 'error' && !/the server responded with a status of|WebSocket connection to|net::ERR_NETWORK_CHANGED/.test(message.text()))
      complaints.push(message.text())
  })
  context.on('weberror', (error) => complaints.push(error.error().message))
  context.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  return complaints
}

/** Whether the page is as wide as its window. */
export const fitsWidth = (page: Page): Promise<boolean> => page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')
