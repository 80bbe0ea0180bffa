/** What the package publishes, used as its users do: packed, unpacked in a folder of its own, and run. */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { transformSync } from 'esbuild'
import type { KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { configMaps, deployments, events, leases, namespaced, namespaces } from '#client/builtIn'
import type { Client } from '#client/client'
import { poll, waitFor } from '#client/waitFor'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'

const root = path.resolve(import.meta.dirname, '../../..')
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-package-'))
const installed = path.join(folder, 'node_modules/skiff-kubernetes')
const deps = { clock: realClock, random: seededRandom(1), log: noLog }
const deadline = () => AbortSignal.timeout(60_000)

before(() => {
  assert.ok(fs.existsSync(path.join(root, 'dist/client.mjs')), 'dist/ is missing: run make build')
  const packed = execFileSync('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], { cwd: root, encoding: 'utf8' }).trim()
  fs.mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['xzf', path.join(folder, packed.split('\n').at(-1) ?? ''), '--strip-components=1', '-C', installed])
  fs.writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}')
})
after(() => fs.rmSync(folder, { recursive: true, force: true }))

/** The page's whole program. */
function operatorOfThePage(): string {
  const page = fs.readFileSync(path.join(root, 'docs/client.md'), 'utf8')
  const code = /```ts operator\n([\s\S]*?)```/.exec(page)?.[1]
  assert.ok(code, 'docs/client.md has an operator')
  return code
}

test('CGO-06 the published library is imported alone, without any other package', () => {
  const script =
    "const c = await import('skiff-kubernetes/client'); const k = await import('skiff-kubernetes/controller'); console.log(typeof c.connect, c.pods.kind, typeof k.defineController)"
  const said = execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: folder, encoding: 'utf8' })
  assert.equal(said.trim(), 'function Pod function')
  const others = "await import('skiff-kubernetes/main')"
  assert.throws(() => execFileSync(process.execPath, ['--input-type=module', '-e', others], { cwd: folder, stdio: 'pipe' }), /ERR_PACKAGE_PATH_NOT_EXPORTED/)
})

interface Site extends KubeObject {
  spec: { page: string; replicas?: number }
  status?: { ready?: boolean; observedGeneration?: number }
}
const sites = namespaced<Site>('example.com', 'v1', 'sites', 'Site')

function writeKubeconfig({ url, ca, token }: Awaited<ReturnType<TestApiServer['listen']>>): string {
  const file = path.join(folder, 'kubeconfig')
  const config = {
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a', namespace: 'web' } }],
    clusters: [{ name: 'a', cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name: 'a', user: { token } }],
  }
  fs.writeFileSync(file, JSON.stringify(config))
  return file
}

/** Makes a site, changes what it owns, and deletes it. */
async function useSites(client: Client, said: () => string): Promise<void> {
  const ref = { namespace: 'web', name: 'home' }
  const site = client.of(sites)
  const madeInTime = deadline()
  for (;;) {
    try {
      await site.create({ metadata: ref, spec: { page: 'hello', replicas: 2 } })
      break
    } catch (error) {
      // Until the operator has made the kind.
      if (!isStatus(error, 'NotFound')) throw error
      await realClock.sleep(20, madeInTime)
    }
  }
  const made = await waitFor(client.of(deployments), ref, (object) => object !== undefined, deps, deadline())
  assert.deepEqual([made?.spec.replicas, made?.metadata.ownerReferences?.[0]?.kind], [2, 'Site'])
  await waitFor(site, ref, (object) => object?.status?.ready === false && object.metadata.finalizers?.[0] === 'example.com/site', deps, deadline())

  await client.of(configMaps).patch(ref, 'merge', { data: { 'index.html': 'defaced' } })
  await waitFor(client.of(configMaps), ref, (object) => object?.data?.['index.html'] === 'hello', deps, deadline())
  await client.of(deployments).patch(ref, 'merge', { status: { replicas: 2, readyReplicas: 2, availableReplicas: 2 } }, { subresource: 'status' })
  await waitFor(site, ref, (object) => object?.status?.ready === true, deps, deadline())
  const port = /port (\d+)/.exec(said())?.[1]
  const fetched = async (at: string) => (await fetch(`http://127.0.0.1:${port}${at}`)).text()
  assert.deepEqual([await fetched('/healthz'), await fetched('/readyz')], ['ok', 'ok'])
  assert.match(await fetched('/metrics'), /leader_election_master_status\{name="site-controller"\} 1\n[\s\S]*workqueue_adds_total\{name="site-controller"\} /)
  await site.delete(ref)
  await waitFor(site, ref, (object) => object === undefined, deps, deadline())
}

test("CGO-08 CGO-09 the page's operator creates each site's objects, restores them, writes status, cleans up, and stops on a signal", async () => {
  const api = await startTestApiServer()
  fs.writeFileSync(path.join(folder, 'operator.mjs'), transformSync(operatorOfThePage(), { loader: 'ts', target: 'node20', format: 'esm' }).code)
  const kubeconfig = writeKubeconfig(await api.listen())
  await api.client.of(namespaces).create({ metadata: { name: 'web' }, spec: {} })
  const child = spawn(process.execPath, ['operator.mjs'], {
    cwd: folder,
    env: { PATH: process.env.PATH, KUBECONFIG: kubeconfig },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (said += part))
  const exited = once(child, 'exit')
  try {
    const useful = useSites(api.client, () => said)
    await Promise.race([useful, exited.then(([code]) => assert.fail(`the operator ended with ${code}: ${said}`))])
    const served = async () => (await api.client.of(events).list({ namespace: 'web' })).items.find(({ message }) => message === 'The site is served')
    assert.equal((await poll(realClock, 20, served, deadline())).reason, 'Ready')
    child.kill('SIGTERM')
    assert.deepEqual(await exited, [0, null], said)
    assert.equal((await api.client.of(leases).get({ namespace: 'web', name: 'site-controller' })).spec?.holderIdentity ?? '', '')
  } finally {
    child.kill('SIGKILL')
    await api.close()
  }
})
