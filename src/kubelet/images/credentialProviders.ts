/**
 * Programs that hand out registry credentials (L3): configured by file, called with JSON over standard input, their answers cached for the duration they state.
 * Upstream: pkg/credentialprovider/plugin (v1.36), API credentialprovider.kubelet.k8s.io/v1.
 */
import { readFile } from 'node:fs/promises'
import type { TokenRequest } from '#api/gen/types/authentication.v1'
import { parseDuration } from '#api/machinery/duration'
import { parseJson } from '#api/machinery/json'
import { messageOf } from '#base/messageOf'
import { serviceAccounts } from '#client/builtIn'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import type { KubeletHost } from '../core/host.ts'
import { repositoryOf } from '../core/imageReference.ts'
import { type DockerConfigEntry, type KeyringConfig, matchesImage } from './keyring.ts'

/** One entry of CredentialProviderConfig. */
interface Provider {
  readonly name: string
  readonly matchImages: readonly string[]
  readonly defaultCacheDuration: string
  readonly apiVersion: string
  readonly args?: readonly string[]
  readonly env?: readonly { readonly name: string; readonly value: string }[]
  readonly tokenAttributes?: TokenAttributes
}

interface TokenAttributes {
  readonly serviceAccountTokenAudience: string
  readonly cacheType: 'Token' | 'ServiceAccount'
  readonly requireServiceAccount: boolean
  readonly requiredServiceAccountAnnotationKeys?: readonly string[]
  readonly optionalServiceAccountAnnotationKeys?: readonly string[]
}

export interface CredentialProviders {
  /** What the plugins answer for an image. Never throws: a plugin that fails has no credentials. */
  configsFor(image: string, pod: FrozenPod): Promise<KeyringConfig[]>
}

const configApis = ['kubelet.config.k8s.io/v1', 'kubelet.config.k8s.io/v1beta1', 'kubelet.config.k8s.io/v1alpha1']
const pluginApis = ['credentialprovider.kubelet.k8s.io/v1', 'credentialprovider.kubelet.k8s.io/v1beta1', 'credentialprovider.kubelet.k8s.io/v1alpha1']
const timeoutMs = 60_000
/** The maximum of cached answers; the oldest are dropped. */
const maxCached = 1000

/** @throws Error that names the field and what to write there */
export async function parseProviders(text: string, file: string): Promise<Provider[]> {
  const { parseYaml } = await import('#api/machinery/yaml')
  const config = parseYaml(text) as { kind?: string; apiVersion?: string; providers?: Provider[] } | null
  const fail = (what: string) => new Error(`credential provider configuration ${file}: ${what}`)
  if (config?.kind !== 'CredentialProviderConfig' || !configApis.includes(config.apiVersion ?? '')) {
    throw fail(`expected kind CredentialProviderConfig of ${configApis[0]}, got ${config?.kind ?? 'no kind'} of ${config?.apiVersion ?? 'no apiVersion'}`)
  }
  const providers = config.providers ?? []
  if (providers.length === 0) throw fail('at least 1 item in plugins is required')
  const names = new Set<string>()
  for (const [index, provider] of providers.entries()) {
    const at = `providers[${index}]`
    if (!provider.name) throw fail(`${at}.name: a name is required`)
    if (/[/ ]/.test(provider.name) || provider.name === '.' || provider.name === '..') throw fail(`${at}.name: "${provider.name}" must be a file name`)
    if (names.has(provider.name)) throw fail(`${at}.name: provider name ${provider.name} is not unique`)
    names.add(provider.name)
    if (!pluginApis.includes(provider.apiVersion)) throw fail(`${at}.apiVersion: "${provider.apiVersion}" is not supported, use ${pluginApis[0]}`)
    if ((provider.matchImages ?? []).length === 0) throw fail(`${at}.matchImages: at least one image is required`)
    const cacheMs = parseDuration(provider.defaultCacheDuration ?? '')
    if (cacheMs === undefined || cacheMs < 0) throw fail(`${at}.defaultCacheDuration: a duration such as 12h is required`)
    if (provider.tokenAttributes && !provider.tokenAttributes.serviceAccountTokenAudience) {
      throw fail(`${at}.tokenAttributes.serviceAccountTokenAudience: an audience is required`)
    }
  }
  return providers
}

/** @throws Error for an invalid configuration */
export async function createCredentialProviders(context: KubeletContext, host: KubeletHost): Promise<CredentialProviders> {
  const file = context.config.imageCredentialProviderConfigPath
  const parsed = await parseProviders(await readFile(host.path(file), 'utf8'), file)
  const sources = parsed.map((provider) => createProvider(context, host, provider))
  return { configsFor: async (image, pod) => (await Promise.all(sources.map((source) => source(image, pod)))).filter((found) => found !== undefined) }
}

interface Answer {
  readonly auth?: Readonly<Record<string, DockerConfigEntry>>
  readonly cacheKeyType?: string
  readonly cacheDuration?: string
}

interface Account {
  readonly token: string
  readonly annotations: Readonly<Record<string, string>>
  readonly identity: { readonly uid: string; readonly namespace: string; readonly name: string }
}

function createProvider(context: KubeletContext, host: KubeletHost, provider: Provider) {
  const { clock, log } = context
  const cache = new Map<string, { readonly config: Readonly<Record<string, DockerConfigEntry>>; readonly expiresAtMs: number }>()
  const underWay = new Map<string, Promise<Answer>>()
  const errors = context.metrics.counter({
    name: 'kubelet_credential_provider_plugin_errors_total',
    help: 'How often a program that hands out registry credentials has failed.',
    labels: ['plugin_name'],
  })
  const duration = context.metrics.histogram({
    name: 'kubelet_credential_provider_plugin_duration',
    help: 'How long a program that hands out registry credentials took, in seconds.',
    labels: ['plugin_name'],
  })

  const ask = async (image: string, account: Account | undefined): Promise<Answer> => {
    const request = {
      kind: 'CredentialProviderRequest',
      apiVersion: provider.apiVersion,
      image,
      ...(account ? { serviceAccountToken: account.token, serviceAccountAnnotations: account.annotations } : {}),
    }
    const environment = (provider.env ?? []).map(({ name, value }) => `${name}=${value}`)
    const program = `${context.config.imageCredentialProviderBinDir}/${provider.name}`
    const startedMs = clock.monotonicMs()
    const result = await host.exec.run('env', [...environment, program, ...(provider.args ?? [])], { input: JSON.stringify(request), timeoutMs })
    const series = { plugin_name: provider.name }
    duration.observe((clock.monotonicMs() - startedMs) / 1000, series)
    if (result.code !== 0) errors.inc(series)
    if (result.code !== 0) throw new Error(`error execing credential provider plugin ${provider.name} for image ${image}: exit status ${result.code}`)
    // Unlike the engine's own, this parser's errors do not quote the text, which holds passwords.
    const answer = parseJson(result.stdout).value as Answer & { kind?: string; apiVersion?: string }
    if (answer.kind !== 'CredentialProviderResponse') throw new Error(`failed to decode CredentialProviderResponse, unexpected kind: "${answer.kind}"`)
    if (answer.apiVersion !== provider.apiVersion) {
      throw new Error(
        `apiVersion from credential plugin response did not match expected apiVersion:${provider.apiVersion}, actual apiVersion:${answer.apiVersion}`,
      )
    }
    return answer
  }

  const askOnce = (key: string, image: string, account: Account | undefined): Promise<Answer> => {
    const known = underWay.get(key)
    if (known) return known
    const asked = ask(image, account).finally(() => underWay.delete(key))
    underWay.set(key, asked)
    return asked
  }

  const remember = (key: string, answer: Answer, config: Readonly<Record<string, DockerConfigEntry>>) => {
    const ms = parseDuration(answer.cacheDuration ?? provider.defaultCacheDuration) ?? 0
    if (ms <= 0) return
    for (const [name, entry] of cache) if (entry.expiresAtMs <= clock.now() || cache.size >= maxCached) cache.delete(name)
    cache.set(key, { config, expiresAtMs: clock.now() + ms })
  }

  return async (image: string, pod: FrozenPod): Promise<KeyringConfig | undefined> => {
    const repository = repositoryOf(image)
    if (!provider.matchImages.some((pattern) => matchesImage(pattern, repository))) return undefined
    try {
      const account = provider.tokenAttributes ? await accountOf(context, provider.tokenAttributes, pod) : undefined
      if (account === 'unfit') return undefined
      const source = account ? { serviceAccount: account.identity } : undefined
      const whose = !account ? '' : provider.tokenAttributes?.cacheType === 'Token' ? account.token : JSON.stringify([account.identity, account.annotations])
      const keyFor = (type: string | undefined) =>
        JSON.stringify([type === 'Image' ? repository : type === 'Registry' ? repository.split('/')[0] : 'global', whose])
      const cached = ['Image', 'Registry', 'Global'].map((type) => cache.get(keyFor(type))).find((entry) => entry && entry.expiresAtMs > clock.now())
      if (cached) return { config: cached.config, source }
      const answer = await askOnce(JSON.stringify([repository, account?.token]), repository, account)
      if (!['Image', 'Registry', 'Global'].includes(answer.cacheKeyType ?? '')) {
        throw new Error(`credential provider plugin did not return a valid cacheKeyType: "${answer.cacheKeyType}"`)
      }
      const config = answer.auth ?? {}
      remember(keyFor(answer.cacheKeyType), answer, config)
      return { config, source }
    } catch (error) {
      log.warn('Failed getting credential from external registry credential provider', {
        provider: provider.name,
        error: messageOf(error),
      })
      return undefined
    }
  }
}

/** The pod's service account for a plugin; 'unfit': the plugin must not be called for this pod. */
async function accountOf({ client }: KubeletContext, wanted: TokenAttributes, pod: FrozenPod): Promise<Account | 'unfit' | undefined> {
  const { namespace = '', name: podName, uid: podUid } = pod.metadata
  const name = pod.spec.serviceAccountName ?? ''
  if (!name) return wanted.requireServiceAccount ? 'unfit' : undefined
  const account = await client.of(serviceAccounts).get({ namespace, name }, { resourceVersion: '0' })
  const given = account.metadata.annotations ?? {}
  if ((wanted.requiredServiceAccountAnnotationKeys ?? []).some((key) => given[key] === undefined)) return 'unfit'
  const keys = [...(wanted.requiredServiceAccountAnnotationKeys ?? []), ...(wanted.optionalServiceAccountAnnotationKeys ?? [])]
  const annotations = Object.fromEntries(keys.flatMap((key) => (given[key] === undefined ? [] : [[key, given[key]]])))
  const request = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { name, namespace },
    spec: { audiences: [wanted.serviceAccountTokenAudience], boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: podName, uid: podUid } },
  }
  const answer = await client.of(serviceAccounts).createSubresource<TokenRequest>({ namespace, name }, 'token', request)
  return { token: answer.status?.token ?? '', annotations, identity: { uid: account.metadata.uid ?? '', namespace, name } }
}
