/** The flags of `skiff etcd serve` (L5), under etcd's names. Upstream: etcd server/embed/config.go, server/etcdmain/help.go (v3.6). */
import { isIP } from 'node:net'
import { parseDuration } from '#api/machinery/duration'
import type { AutoCompaction } from '#store/serve/autoCompaction'
import { duration, flag, list, text, UsageError, whole } from '../../apiserver/options/flags.ts'
import { authoritiesOf, pairOf, readFollowed, readNamed } from '../../apiserver/options/namedFiles.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'

const megabyte = 1024 * 1024

export interface EtcdListener {
  readonly host: string
  readonly port: number
  readonly isSecure: boolean
}

export const etcdServing = optionGroup({
  name: 'Serving',
  flags: {
    'advertise-client-urls': list('The URLs that `member list` shows; empty: those of --listen-client-urls'),
    'auth-token': text('simple: random tokens in memory', 'simple'),
    'auth-token-ttl': whole('Seconds from the last use of a token to its end', 300),
    'auto-compaction-mode': text('periodic or revision', 'periodic'),
    'auto-compaction-retention': text('What compaction keeps: a duration such as 1h30m or a number of hours, or a number of revisions; 0: everything', '0'),
    'bcrypt-cost': whole('The logarithm of the rounds by which passwords are hashed, 4 to 31', 10),
    'cert-file': text('The certificate that clients see'),
    'client-cert-auth': flag('Clients need a certificate that an authority of --trusted-ca-file signed'),
    'config-file': text("A file with etcd's YAML form of these flags, which then counts alone"),
    'data-dir': text('Where the keys are stored; empty: NAME.etcd in the working directory'),
    'grpc-keepalive-interval': duration('A client that has sent nothing for this long is pinged; 0: never', 7_200_000),
    'grpc-keepalive-min-time': duration('The shortest time between two pings of a client; one that pings more often is disconnected', 5_000),
    'grpc-keepalive-timeout': duration('A client that does not answer a ping within this time is disconnected; 0: clients are not pinged', 20_000),
    'key-file': text('The key of the certificate'),
    'listen-client-urls': list('The URLs to listen on', ['http://localhost:2379']),
    'max-concurrent-streams': whole('Calls in flight on one connection', 10_000),
    'max-request-bytes': whole('Bytes of keys and values in one request', 1.5 * megabyte),
    'max-txn-ops': whole('Operations in one transaction', 128),
    name: text('The name that `member list` shows', 'default'),
    'quota-backend-bytes': whole('Bytes of stored data from which on writes are refused; 0: 2 GiB', 0),
    'trusted-ca-file': text('The authorities that sign the certificates of clients'),
    'watch-progress-notify-interval': duration('Time between two progress notifications of a watch without events', 600_000),
  },
  async settings(values, context) {
    const urls = values['listen-client-urls'].map(listenerOf)
    const faults = [
      ...urls.flatMap((one) => (typeof one === 'string' ? [one] : [])),
      ...(values['cert-file'] === '' && urls.some((one) => typeof one === 'object' && one.isSecure) ? ['an https URL needs --cert-file and --key-file'] : []),
      ...((values['cert-file'] === '') === (values['key-file'] === '') ? [] : ['--cert-file and --key-file must be given together']),
      ...(values['client-cert-auth'] && values['trusted-ca-file'] === '' ? ['--client-cert-auth needs --trusted-ca-file'] : []),
      ...tokenFaults(values['auth-token']),
      ...(values['bcrypt-cost'] >= 4 && values['bcrypt-cost'] <= 31 ? [] : ['--bcrypt-cost must be from 4 to 31']),
      ...compactionFaults(values['auto-compaction-mode'], values['auto-compaction-retention']),
      ...(['grpc-keepalive-interval', 'grpc-keepalive-min-time', 'grpc-keepalive-timeout'] as const).flatMap((name) =>
        values[name] >= 0 ? [] : [`--${name} must not be negative`],
      ),
      ...(['auth-token-ttl', 'max-concurrent-streams', 'max-request-bytes', 'max-txn-ops'] as const).flatMap((name) =>
        values[name] > 0 ? [] : [`--${name} must be positive`],
      ),
    ]
    if (faults.length > 0) throw new UsageError(faults)
    const certificate = await readFollowed([values['cert-file'], values['key-file']], context, pairOf)
    const ca = await readNamed(values['trusted-ca-file'], context)
    const clientCa = values['client-cert-auth'] ? { clientCa: authoritiesOf([ca ?? '']) } : {}
    return {
      name: values.name,
      dataDir: values['data-dir'] || `${values.name}.etcd`,
      listeners: urls as readonly EtcdListener[],
      clientUrls: values['advertise-client-urls'].length > 0 ? values['advertise-client-urls'] : values['listen-client-urls'],
      certificate,
      tls: () => certificate.value && { ...certificate.value, ...clientCa },
      autoCompaction: compactionOf(values['auto-compaction-mode'], values['auto-compaction-retention']),
      maxOperations: values['max-txn-ops'],
      maxRequestBytes: values['max-request-bytes'],
      maxConcurrentStreams: values['max-concurrent-streams'],
      quotaBytes: values['quota-backend-bytes'] > 0 ? values['quota-backend-bytes'] : 2 * 1024 * megabyte,
      tokenTtlMs: values['auth-token-ttl'] * 1000,
      bcryptCost: values['bcrypt-cost'],
      namesInCertificates: values['client-cert-auth'],
      keepAlive: {
        intervalMs: values['grpc-keepalive-interval'],
        timeoutMs: values['grpc-keepalive-timeout'],
        minTimeMs: values['grpc-keepalive-min-time'],
      },
      progressNotifyMs: values['watch-progress-notify-interval'],
    }
  },
})

/** A listener, or the fault of its URL. */
function listenerOf(text: string): EtcdListener | string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.port === '') return `--listen-client-urls: ${JSON.stringify(text)} is not http(s)://HOST:PORT`
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (host !== 'localhost' && isIP(host) === 0) return `--listen-client-urls: ${JSON.stringify(host)} must be an IP address or localhost`
  return { host: host === 'localhost' ? '127.0.0.1' : host, port: Number(url.port), isSecure: url.protocol === 'https:' }
}

function tokenFaults(option: string): string[] {
  const [type, ...settings] = option.split(',')
  if (type === 'jwt') return ['--auth-token: tokens of the type jwt are not supported, use simple']
  // As etcd, which reads no settings of simple tokens.
  return type === 'simple' && settings.every((setting) => setting.split('=').length === 2) ? [] : [`--auth-token must be simple, not ${JSON.stringify(option)}`]
}

function compactionFaults(mode: string, retention: string): string[] {
  if (mode !== 'periodic' && mode !== 'revision') return [`--auto-compaction-mode must be periodic or revision, not ${JSON.stringify(mode)}`]
  const isNumber = /^\d+$/.test(retention)
  if (isNumber || (mode === 'periodic' && (parseDuration(retention) ?? -1) >= 0)) return []
  return [
    `--auto-compaction-retention: ${JSON.stringify(retention)} is not ${mode === 'periodic' ? 'a duration or a number of hours' : 'a number of revisions'}`,
  ]
}

/** Undefined: nothing is compacted. */
function compactionOf(mode: string, retention: string): AutoCompaction | undefined {
  const isNumber = /^\d+$/.test(retention)
  if (mode === 'revision') return Number(retention) > 0 ? { revisions: Number(retention) } : undefined
  const periodMs = isNumber ? Number(retention) * 3_600_000 : (parseDuration(retention) ?? 0)
  return periodMs > 0 ? { periodMs } : undefined
}
