import assert from 'node:assert/strict'
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import type { AuthConfig, PodSandboxConfig, RuntimeImage } from '#grpc/criTypes'
import { createExec } from '#host/exec'
import { createRecordedMetrics } from '#testing/recordedMetrics'
import { type KubeletConfig, kubeletConfig } from '../core/config.ts'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { StartError } from '../core/startError.ts'
import { createCredentialProviders, parseProviders } from './credentialProviders.ts'
import { createImageManager } from './imageManager.ts'
import { requiresVerification } from './pullRecords.ts'

const sandbox = {} as PodSandboxConfig
const base64 = (text: string) => Buffer.from(text).toString('base64')

/** A node of which only pulling images is real: `pull` is the registry. */
async function setUp(t: TestContext, pull: (image: string, auth: AuthConfig | undefined) => Promise<void>, settings: Partial<KubeletConfig> = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'skiff-images-'))
  t.after(() => rm(directory, { recursive: true, force: true }))
  const images = new Map<string, RuntimeImage>()
  const present = (name: string) =>
    images.set(name, { id: `sha256:${name}`, repoTags: [name], repoDigests: [], size: 7, uid: null, username: '', pinned: false })
  const events: string[] = []
  const secrets = new Map<string, string>()
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const metrics = createRecordedMetrics()
  const context = {
    clock,
    log: noLog,
    metrics,
    host: { exec: createExec(), path: (path: string) => path },
    config: kubeletConfig({ nodeName: 'n', rootDirectory: directory, ...settings }),
    recorder: { event: (_about: unknown, _type: string, reason: string, message: string) => void events.push(`${reason}: ${message}`), flush: async () => {} },
    objects: {
      secret: async (namespace: string, name: string) => {
        const password = secrets.get(name)
        if (password === undefined) throw new Error('not found')
        const auths = { 'registry.example': { username: name, password } }
        return {
          metadata: { uid: name, namespace, name },
          type: 'kubernetes.io/dockerconfigjson',
          data: { '.dockerconfigjson': base64(JSON.stringify({ auths })) },
        }
      },
    },
    runtime: {
      usesHost: true,
      listImages: async () => [...images.values()],
      imageStatus: async (name: string) => images.get(name) ?? [...images.values()].find(({ id }) => id === name),
      pullImage: async (name: string, auth: AuthConfig | undefined) => {
        await pull(name, auth)
        present(name)
        return `sha256:${name}`
      },
    },
  } as unknown as KubeletContext
  const pod = (uid: string, ...pullSecrets: string[]) =>
    ({
      metadata: { uid, namespace: 'default', name: uid },
      spec: { containers: [], imagePullSecrets: pullSecrets.map((name) => ({ name })) },
    }) as unknown as FrozenPod
  const ensure = async (manager: Awaited<ReturnType<typeof createImageManager>>, who: FrozenPod, image: string, imagePullPolicy = 'IfNotPresent') =>
    manager.ensureImage(who, { name: 'c', image, imagePullPolicy }, sandbox).then(
      ({ imageRef }) => imageRef,
      (error: unknown) => (error instanceof StartError ? `${error.reason}: ${error.message}` : String(error)),
    )
  return { context, directory, clock, events, secrets, present, pod, ensure, metrics: metrics.values }
}

const image = 'registry.example/app:1'

test('KUB-10 a failed pull backs off with its reason, and the event of success has its duration and size', async (t) => {
  let failure: string | undefined = 'RegistryUnavailable: 503'
  const node = await setUp(t, async () => {
    if (failure) throw new Error(failure)
  })
  const manager = await createImageManager(node.context)
  const refused = `image pull failed for ${image} because the registry is unavailable: 503`
  assert.equal(await node.ensure(manager, node.pod('a', 'gone'), image), `RegistryUnavailable: ${refused}`)
  assert.equal(await node.ensure(manager, node.pod('a'), image), `ImagePullBackOff: Back-off pulling image "${image}": RegistryUnavailable: ${refused}`)
  failure = undefined
  assert.equal(await node.ensure(manager, node.pod('b'), image), `sha256:${image}`)
  assert.deepEqual(node.events, [
    `Pulling: Pulling image "${image}"`,
    'FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (gone); attempting to pull the image may not succeed.',
    `Failed: Failed to pull image "${image}": RegistryUnavailable: 503`,
    `BackOff: Back-off pulling image "${image}"`,
    `Pulling: Pulling image "${image}"`,
    `Pulled: Successfully pulled image "${image}" in 0ms (0ms including waiting). Image size: 7 bytes.`,
  ])
})

test('KUB-10 pull policies: Never does not pull, Always does each time, an image that is there is not pulled', async (t) => {
  const pulls: string[] = []
  const node = await setUp(t, async (name) => void pulls.push(name))
  const manager = await createImageManager(node.context)
  const pod = node.pod('a')
  assert.equal(await node.ensure(manager, pod, 'x:1', 'Never'), 'ErrImageNeverPull: Container image "x:1" is not present with pull policy of Never')
  node.present('x:1')
  assert.equal(await node.ensure(manager, pod, 'x:1', 'Never'), 'sha256:x:1')
  assert.equal(await node.ensure(manager, pod, 'x:1'), 'sha256:x:1')
  assert.deepEqual(pulls, [])
  await node.ensure(manager, pod, 'x:1', 'Always')
  await node.ensure(manager, pod, 'x:1', 'Always')
  assert.deepEqual(pulls, ['x:1', 'x:1'])
  assert.match(await node.ensure(manager, pod, 'Not An Image'), /^InvalidImageName: Failed to apply default image tag "Not An Image"/)
})

test('KUB-10 every credential is tried; more pulls than allowed are refused', async (t) => {
  const tried: (string | undefined)[] = []
  const node = await setUp(
    t,
    async (_name, auth) => {
      tried.push(auth?.username)
      if (auth?.password !== 'right') throw new Error(`denied for ${auth?.username}`)
    },
    { registryBurst: 2, registryPullQPS: 1 },
  )
  node.secrets.set('one', 'wrong').set('two', 'wrong').set('three', 'right')
  const manager = await createImageManager(node.context)
  assert.equal(await node.ensure(manager, node.pod('a', 'one', 'two'), image), 'ErrImagePull: [denied for one, denied for two]')
  assert.equal(await node.ensure(manager, node.pod('b', 'one', 'three'), image), `sha256:${image}`)
  assert.deepEqual(tried, ['one', 'two', 'one', 'three'])
  assert.equal(await node.ensure(manager, node.pod('c'), 'other:1'), 'ErrImagePull: pull QPS exceeded')
})

test('KUB-10 metrics report the records of pulls on disk, and the checks of access to present images', async (t) => {
  const node = await setUp(t, async () => {})
  node.secrets.set('one', 'right')
  const manager = await createImageManager(node.context)
  const read = (name: string) => node.metrics.get(`kubelet_imagemanager_${name}`)
  assert.deepEqual([read('ondisk_pullintents'), read('ondisk_pulledrecords')], [0, 0])
  await node.ensure(manager, node.pod('a', 'one'), image)
  assert.deepEqual([read('ondisk_pullintents'), read('ondisk_pulledrecords')], [0, 1])
  node.present('preloaded:1')
  await node.ensure(manager, node.pod('a'), 'preloaded:1')
  await node.ensure(manager, node.pod('a', 'one'), image)
  await node.ensure(manager, node.pod('b'), image, 'Never')
  const checks = ['credentialPolicyAllowed', 'credentialRecordFound', 'mustAuthenticate'].map((result) =>
    read(`image_mustpull_checks_total{result="${result}"}`),
  )
  assert.deepEqual(checks, [1, 1, 1])
})

const parallelism = [
  { settings: {}, want: 1 },
  { settings: { serializeImagePulls: false, maxParallelImagePulls: 3 }, want: 3 },
  { settings: { serializeImagePulls: false }, want: 5 },
]
for (const { settings, want } of parallelism) {
  test(`KUB-10 with ${JSON.stringify(settings)} ${want} of 5 images are pulled in parallel`, async (t) => {
    let most = 0
    let active = 0
    const waiting: (() => void)[] = []
    const node = await setUp(
      t,
      async () => {
        most = Math.max(most, ++active)
        await new Promise<void>((resolve) => waiting.push(resolve))
        active--
      },
      settings,
    )
    const manager = await createImageManager(node.context)
    let left = 5
    const all = Array.from({ length: 5 }, (_, index) => node.ensure(manager, node.pod(`p${index}`), `i:${index}`).finally(() => left--))
    while (left > 0) {
      await new Promise((resolve) => setImmediate(resolve))
      if (active === Math.min(want, left)) waiting.shift()?.()
    }
    await Promise.all(all)
    assert.equal(most, want)
  })
}

test("KUB-10 who has no credentials cannot use an image that another pod's secret has brought, also after a restart", async (t) => {
  const node = await setUp(t, async (_name, auth) => {
    if (!auth) throw new Error('denied')
  })
  node.secrets.set('mine', 'pw').set('same', 'pw')
  node.present('preloaded:1')
  const first = await createImageManager(node.context)
  assert.equal(await node.ensure(first, node.pod('a', 'mine'), image), `sha256:${image}`)
  for (const manager of [first, await createImageManager(node.context)]) {
    const who = manager === first ? 'b' : 'c'
    assert.equal(await node.ensure(manager, node.pod(who), image), 'ErrImagePull: denied', 'without a secret')
    assert.match(await node.ensure(manager, node.pod(who), image, 'Never'), /^ErrImageNeverPull/)
    assert.equal(await node.ensure(manager, node.pod(who, 'mine'), image), `sha256:${image}`, 'with the same secret')
    assert.equal(await node.ensure(manager, node.pod(who), 'preloaded:1'), 'sha256:preloaded:1')
  }
  const [file = ''] = await readdir(`${node.directory}/image_manager/pulled`)
  const record = JSON.parse(await readFile(`${node.directory}/image_manager/pulled/${file}`, 'utf8')) as Record<string, unknown>
  assert.deepEqual(
    [record.kind, record.imageRef, Object.keys(record.credentialMapping as object)],
    ['ImagePulledRecord', `sha256:${image}`, ['registry.example/app']],
  )
  assert.equal((await stat(`${node.directory}/image_manager/pulled/${file}`)).mode & 0o777, 0o600)
  assert.deepEqual(await readdir(`${node.directory}/image_manager/pulling`), [])
  await node.clock.advance(2_000)
  await first.prune([], node.clock.now())
  assert.deepEqual(await readdir(`${node.directory}/image_manager/pulled`), [])
})

test('KUB-10 an image whose pull was running when the kubelet stopped allows no credentials', async (t) => {
  const node = await setUp(t, async () => {
    throw new Error('denied')
  })
  const file = `${node.directory}/image_manager/pulling/sha256-0`
  await createImageManager(node.context)
  await writeFile(file, JSON.stringify({ kind: 'ImagePullIntent', image }))
  node.present(image)
  const manager = await createImageManager(node.context)
  assert.deepEqual(await readdir(`${node.directory}/image_manager/pulling`), [])
  const noted = ['pullintents', 'pulledrecords'].map((name) => node.metrics.get(`kubelet_imagemanager_ondisk_${name}`))
  assert.deepEqual(noted, [0, 1])
  assert.equal(await node.ensure(manager, node.pod('a'), image), 'ErrImagePull: denied')
})

const policies = [
  ['NeverVerify', true, 'a/b:1', false],
  ['AlwaysVerify', false, 'a/b:1', true],
  ['NeverVerifyPreloadedImages', false, 'a/b:1', false],
  ['NeverVerifyPreloadedImages', true, 'a/b:1', true],
  ['NeverVerifyAllowlistedImages', false, 'a/b:1', false],
  ['NeverVerifyAllowlistedImages', false, 'c/d', false],
  ['NeverVerifyAllowlistedImages', false, 'c/d/e', true],
] as const
for (const [policy, byKubelet, name, want] of policies) {
  test(`KUB-10 ${policy} for ${name}, pulled by the kubelet: ${byKubelet}`, () =>
    assert.equal(requiresVerification(name, byKubelet, policy, ['a/*', 'c/d']), want))
}

const providers = (text = '') => `
kind: CredentialProviderConfig
apiVersion: kubelet.config.k8s.io/v1
providers:
- name: helper
  matchImages: ["*.example"]
  defaultCacheDuration: 1m
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  args: [get]
  env: [{name: WHO, value: me}]
${text}`

test('KUB-10 a credential provider is asked for images that match, and not again while its answer holds', async (t) => {
  const node = await setUp(t, async () => {})
  const bin = node.directory
  const program = `#!/bin/sh
cat >>${bin}/asked; echo >>${bin}/asked
printf '{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Registry","auth":{"*.example":{"username":"%s","password":"%s"}}}' "$WHO" "$1"
`
  await writeFile(`${bin}/helper`, program)
  await chmod(`${bin}/helper`, 0o755)
  await writeFile(`${bin}/config.yaml`, providers())
  const config = { ...node.context.config, imageCredentialProviderConfigPath: `${bin}/config.yaml`, imageCredentialProviderBinDir: bin }
  const { host } = node.context
  assert.ok(host)
  const asked = await createCredentialProviders({ ...node.context, config }, host)
  const want = [{ config: { '*.example': { username: 'me', password: 'get' } }, source: undefined }]
  assert.deepEqual(await Promise.all([asked.configsFor(image, node.pod('a')), asked.configsFor(image, node.pod('b'))]), [want, want])
  assert.deepEqual(await asked.configsFor('registry.example/other:2', node.pod('a')), want)
  assert.deepEqual(await asked.configsFor('elsewhere.com/x', node.pod('a')), [])
  const request = { kind: 'CredentialProviderRequest', apiVersion: 'credentialprovider.kubelet.k8s.io/v1', image: 'registry.example/app' }
  assert.equal(await readFile(`${bin}/asked`, 'utf8'), `${JSON.stringify(request)}\n`)
  await node.clock.advance(61_000)
  await writeFile(`${bin}/helper`, '#!/bin/sh\nexit 3\n')
  assert.deepEqual(await asked.configsFor(image, node.pod('a')), [], 'a plugin that fails has none')
  const read = (what: string) => node.metrics.get(`kubelet_credential_provider_plugin_${what}{plugin_name="helper"}`)
  assert.deepEqual([read('duration'), read('errors_total')], [2, 1])
})

const wrong = [
  ['kind: Pod', /expected kind CredentialProviderConfig of kubelet.config.k8s.io\/v1, got Pod of no apiVersion/],
  [providers('- {name: helper}'), /providers\[1\]\.name: provider name helper is not unique/],
  [providers('- {name: a/b}'), /providers\[1\]\.name: "a\/b" must be a file name/],
  [providers('- {name: b, apiVersion: v9}'), /providers\[1\]\.apiVersion: "v9" is not supported/],
] as const
for (const [text, message] of wrong) test(`KUB-10 credential providers: ${message.source}`, () => assert.rejects(parseProviders(text, 'f'), { message }))
