/**
 * Credentials from a program that a kubeconfig names (L2): run when first needed, when they have expired and when a server refuses them; once
 * for all calls that wait. Running the program is the caller's. Upstream: client-go/plugin/pkg/client/auth/exec (v1.36).
 */
import { parseJson } from '#api/machinery/json'
import type { Clock } from '#base/clock'
import { parseTime } from '#base/time'
import type { CredentialSource, Credentials } from './credentials.ts'

export interface ExecConfig {
  readonly apiVersion?: string | undefined
  readonly command: string
  readonly args?: readonly string[] | null | undefined
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null | undefined
  readonly installHint?: string | undefined
  readonly provideClusterInfo?: boolean | undefined
  readonly interactiveMode?: 'Never' | 'IfAvailable' | 'Always' | undefined
}

export interface PluginRunner {
  /** Whether a user can answer a program's questions: standard input is a terminal. */
  readonly interactive: boolean
  /** What the program wrote to its standard output. @throws Error with code ENOENT when there is no such program, any other when it failed. */
  run(command: string, args: readonly string[], env: Readonly<Record<string, string>>, interactive: boolean): Promise<string>
}

const versions: readonly string[] = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']

interface ExecCredential {
  readonly apiVersion?: string
  readonly kind?: string
  readonly status?: {
    readonly token?: string
    readonly clientCertificateData?: string
    readonly clientKeyData?: string
    readonly expirationTimestamp?: string
  }
}

/** Programs with provideClusterInfo get `cluster`. @throws Error for a configuration that cannot work. */
export function execCredentials(config: ExecConfig, cluster: object, deps: { readonly clock: Clock; readonly plugins: PluginRunner }): CredentialSource {
  const { apiVersion = '' } = config
  if (!versions.includes(apiVersion)) throw new Error(`exec plugin: invalid apiVersion ${JSON.stringify(apiVersion)}`)
  const interactive = isInteractive(config, deps.plugins)
  let known: { readonly credentials: Credentials; readonly expiresMs: number } | undefined
  let running: Promise<Credentials> | undefined

  async function run(): Promise<Credentials> {
    const spec = { interactive, ...(config.provideClusterInfo ? { cluster } : {}) }
    const info = JSON.stringify({ kind: 'ExecCredential', apiVersion, spec })
    const env = { ...Object.fromEntries((config.env ?? []).map(({ name, value }) => [name, value])), KUBERNETES_EXEC_INFO: info }
    let text: string
    try {
      text = await deps.plugins.run(config.command, config.args ?? [], env, interactive)
    } catch (error) {
      const missing = (error as { code?: unknown }).code === 'ENOENT'
      const what = missing ? `exec: executable ${config.command} not found` : `exec: executable ${config.command} failed: ${(error as Error).message}`
      throw new Error(missing && config.installHint ? `${what}\n\n${config.installHint}` : what, { cause: error })
    }
    const { credentials, expiresMs } = readAnswer(text, apiVersion)
    // Certificates compare by content: an unchanged credential stays the same object.
    const unchanged = known && JSON.stringify(known.credentials) === JSON.stringify(credentials)
    known = { credentials: unchanged && known ? known.credentials : credentials, expiresMs }
    return known.credentials
  }

  const runOnce = () => {
    running ??= run().finally(() => {
      running = undefined
    })
    return running
  }
  return {
    get: async () => (known && deps.clock.now() <= known.expiresMs ? known.credentials : runOnce()),
    refresh: async (used) => {
      if (known?.credentials === used) await runOnce()
    },
  }
}

function isInteractive({ apiVersion, interactiveMode }: ExecConfig, { interactive }: PluginRunner): boolean {
  const mode = interactiveMode ?? (apiVersion === versions[0] ? undefined : 'IfAvailable')
  if (mode === 'Never') return false
  if (mode === 'IfAvailable') return interactive
  if (mode !== 'Always') throw new Error(`exec plugin: unknown interactiveMode: ${JSON.stringify(mode ?? '')}`)
  if (!interactive) throw new Error('exec plugin cannot support interactive mode: standard input is not a terminal')
  return true
}

function readAnswer(text: string, apiVersion: string): { credentials: Credentials; expiresMs: number } {
  let answer: ExecCredential
  try {
    // Unlike the engine's own, this parser's errors do not quote the text, which holds a token.
    answer = parseJson(text).value as ExecCredential
  } catch (error) {
    throw new Error(`decoding stdout: ${(error as Error).message}`, { cause: error })
  }
  if (answer?.kind !== 'ExecCredential') throw new Error('decoding stdout: it is not an ExecCredential')
  if (answer.apiVersion !== apiVersion) {
    throw new Error(`exec plugin is configured to use API version ${apiVersion}, plugin returned version ${answer.apiVersion ?? ''}`)
  }
  const { status } = answer
  if (!status) throw new Error("exec plugin didn't return a status field")
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = status
  if (!token && !cert && !key) throw new Error("exec plugin didn't return a token or cert/key pair")
  if (!cert !== !key) throw new Error('exec plugin returned only certificate or key, not both')
  return { credentials: { token, cert, key }, expiresMs: parseTime(expirationTimestamp ?? '') ?? Number.POSITIVE_INFINITY }
}
