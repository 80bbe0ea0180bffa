/**
 * Every field of KubeProxyConfiguration v1alpha1 (L3, pure): its type and its default. Upstream: k8s.io/kube-proxy/config/v1alpha1/types.go,
 * pkg/proxy/apis/config/v1alpha1/defaults.go (v1.36).
 */
export type FieldType = 'boolean' | 'integer' | 'number' | 'duration' | 'string' | 'list' | 'gates' | 'any'

export interface Field {
  readonly type: FieldType
  readonly default: unknown
}

export interface Fields {
  readonly [name: string]: Field | Fields
}

export const configurationApiVersion = 'kubeproxy.config.k8s.io/v1alpha1'
export const configurationKind = 'KubeProxyConfiguration'

const field = (type: FieldType, byDefault: unknown): Field => ({ type, default: byDefault })
const text = (byDefault = '') => field('string', byDefault)
const off = field('boolean', false)
const period = (byDefault = '0s') => field('duration', byDefault)
const none = field('list', null)

export const configurationFields: Fields = {
  bindAddress: text('0.0.0.0'),
  bindAddressHardFail: off,
  clientConnection: {
    acceptContentTypes: text(),
    burst: field('integer', 10),
    contentType: text('application/vnd.kubernetes.protobuf'),
    kubeconfig: text(),
    qps: field('number', 5),
  },
  clusterCIDR: text(),
  configSyncPeriod: period('15m0s'),
  conntrack: {
    maxPerCore: field('integer', 32 * 1024),
    min: field('integer', 128 * 1024),
    tcpBeLiberal: off,
    tcpCloseWaitTimeout: period('1h0m0s'),
    tcpEstablishedTimeout: period('24h0m0s'),
    udpStreamTimeout: period(),
    udpTimeout: period(),
  },
  detectLocal: { bridgeInterface: text(), interfaceNamePrefix: text() },
  detectLocalMode: text(),
  enableProfiling: off,
  featureGates: field('gates', {}),
  healthzBindAddress: text(),
  hostnameOverride: text(),
  iptables: {
    localhostNodePorts: field('boolean', true),
    masqueradeAll: off,
    masqueradeBit: field('integer', 14),
    minSyncPeriod: period('1s'),
    syncPeriod: period('30s'),
  },
  ipvs: {
    excludeCIDRs: none,
    minSyncPeriod: period(),
    scheduler: text(),
    strictARP: off,
    syncPeriod: period('30s'),
    tcpFinTimeout: period(),
    tcpTimeout: period(),
    udpTimeout: period(),
  },
  logging: field('any', {}),
  metricsBindAddress: text(),
  mode: text(),
  nftables: { masqueradeAll: off, masqueradeBit: field('integer', 14), minSyncPeriod: period('1s'), syncPeriod: period('30s') },
  nodePortAddresses: none,
  oomScoreAdj: field('integer', -999),
  portRange: text(),
  showHiddenMetricsForVersion: text(),
  windowsRunAsService: off,
  winkernel: {
    enableDSR: off,
    forwardHealthCheckVip: off,
    networkName: text(),
    rootHnsEndpointName: text(),
    sourceVip: text(),
  },
}

export const isField = (one: Field | Fields | undefined): one is Field => typeof one?.type === 'string'
