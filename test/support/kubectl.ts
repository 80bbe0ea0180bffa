/** The real kubectl against a test server: with a kubeconfig and a home of its own, which go with it. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestListener } from '#testing/apiServer'
import { kubectlVersion } from '../e2e/support/localCluster.ts'
import { newestPair, preferPackagedProgram } from './packagedPrograms.ts'

// The newest of the packages; test/e2e/kubectlCommands runs the oldest as well.
preferPackagedProgram(newestPair, 'kubectl')

/** 0: there is none. */
export const kubectlMinor = kubectlVersion()?.minor ?? 0

/** Why tests that need kubectl cannot run; false when they can. */
export const withoutKubectl: string | false = kubectlMinor > 0 ? false : 'kubectl is not installed'

/** For what came with a release of kubectl: older ones skip it, by name. */
export function sinceKubectl(release: number): { readonly skip: string | false } {
  return { skip: withoutKubectl || (kubectlMinor < release ? `kubectl 1.${kubectlMinor} is older than 1.${release}` : false) }
}

export interface TestKubectl {
  /** `args`: one string, split at spaces, or a list. Never rejects. */
  run(args: string | readonly string[], input?: string): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }>
  /** Its standard output; fails the test with its error when it fails. */
  must(args: string, input?: string): Promise<string>
  /** The kubeconfig's path, for what is started in another way. */
  readonly kubeconfig: string
  readonly env: NodeJS.ProcessEnv
  remove(): void
}

export function testKubectl({ url, ca, token }: Pick<TestListener, 'url' | 'ca' | 'token'>): TestKubectl {
  const directory = mkdtempSync(join(tmpdir(), 'skiff-kubectl-'))
  const kubeconfig = join(directory, 'config')
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name: 'u', user: { token } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }
  writeFileSync(kubeconfig, JSON.stringify(content), { mode: 0o600 })
  const env = { ...process.env, KUBECONFIG: kubeconfig, HOME: directory }
  const run: TestKubectl['run'] = (args, input) =>
    new Promise((resolve) => {
      const list = typeof args === 'string' ? args.split(' ') : [...args]
      const child = execFile('kubectl', list, { env }, (error, stdout, stderr) => resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr }))
      child.stdin?.end(input)
    })
  return {
    kubeconfig,
    env,
    run,
    async must(args, input) {
      const { code, stdout, stderr } = await run(args, input)
      assert.equal(code, 0, `kubectl ${args}: ${stderr}`)
      return stdout
    },
    remove: () => rmSync(directory, { recursive: true }),
  }
}
