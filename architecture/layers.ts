/**
 * The one table of allowed imports between folders (architecture section 2). scripts/layers.mjs turns it into the linter's rules (biome.json);
 * test/architecture plants one violation of each kind and asserts that the linter names it.
 */

const components = [
  'base',
  'api',
  'cel',
  'host',
  'grpc',
  'csi',
  'http',
  'streaming',
  'client',
  'trace',
  'why',
  'store',
  'apiserver',
  'controllers',
  'scheduler',
  'proxy',
  'network',
  'dns',
  'ingress',
  'kubelet',
  'metrics',
]

/** Top folder of src/ → the other top folders it may import. */
export const layers: Readonly<Record<string, readonly string[]>> = {
  base: [],
  cel: ['base'],
  api: ['base', 'cel'],
  host: ['base'],
  grpc: ['base'],
  csi: ['api', 'base', 'client', 'controllers', 'grpc', 'host'],
  http: ['base'],
  streaming: ['base'],
  client: ['api', 'base', 'streaming'],
  trace: ['api', 'base'],
  why: ['api', 'base'],
  store: ['base', 'grpc'],
  apiserver: ['api', 'base', 'cel', 'client', 'http', 'store', 'streaming', 'trace'],
  controllers: ['api', 'base', 'cel', 'client', 'trace'],
  scheduler: ['api', 'base', 'cel', 'client', 'trace'],
  proxy: ['api', 'base', 'client', 'host'],
  network: ['api', 'base', 'client', 'host'],
  dns: ['api', 'base', 'cel', 'client', 'host'],
  ingress: ['api', 'base', 'client', 'http'],
  kubelet: ['api', 'base', 'client', 'grpc', 'host', 'streaming', 'trace'],
  metrics: ['api', 'base', 'client'],
  ui: ['api', 'base', 'client', 'http', 'trace', 'why'],
  cli: ['api', 'base', 'client', 'host', 'streaming', 'trace', 'ui', 'why'],
  testing: [...components, 'cli', 'main', 'ui'],
  main: [...components, 'cli', 'ui'],
}

/**
 * Layers inside a top folder: subfolder → the sibling subfolders that it may import. Files directly in the top folder assemble the subfolders:
 * they import all of them, and no subfolder imports them. A subfolder's tests may import anything of the top folder.
 */
export const rooms: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  api: {
    debug: ['gen', 'machinery'],
    gen: [],
    machinery: ['gen'],
    discovery: ['gen', 'machinery'],
    helpers: ['gen', 'machinery'],
    podSecurity: ['gen', 'machinery'],
    schema: ['gen', 'machinery'],
    configuration: ['machinery', 'schema'],
    managedFields: ['machinery', 'schema'],
    openapi: ['discovery', 'machinery', 'schema'],
    patch: ['machinery', 'schema'],
    protobuf: ['machinery', 'schema'],
    tables: ['machinery', 'schema'],
    cel: ['gen', 'machinery', 'patch', 'schema'],
    kinds: ['cel', 'gen', 'helpers', 'machinery', 'schema', 'tables'],
  },
  csi: { server: [], hostpath: ['server'], controllers: ['server'] },
  ingress: { model: [], proxy: ['model'] },
  ui: { model: [], server: ['model'], page: ['model'] },
  store: { bbolt: [], local: [], drivers: ['local'], snapshot: ['bbolt'], serve: ['snapshot'] },
  apiserver: {
    yaml: [],
    core: ['yaml'],
    webhooks: ['backends', 'core'],
    encryption: ['core'],
    tokens: ['core'],
    audit: ['core'],
    backends: ['core'],
    server: ['core'],
    authz: ['core', 'webhooks'],
    authn: ['authz', 'core', 'tokens', 'webhooks'],
    admission: ['authz', 'backends', 'core', 'webhooks'],
    registry: ['admission', 'authn', 'authz', 'core', 'encryption'],
    kinds: ['authn', 'authz', 'core', 'registry'],
    flowcontrol: ['core', 'registry'],
    pipeline: ['audit', 'authn', 'authz', 'core', 'flowcontrol'],
    reviews: ['authn', 'authz', 'core'],
    bootstrap: ['core', 'kinds', 'registry'],
    aggregation: ['authn', 'backends', 'bootstrap', 'core', 'registry'],
    crd: ['admission', 'aggregation', 'backends', 'core', 'registry', 'webhooks'],
    endpoints: ['admission', 'authz', 'backends', 'core', 'registry', 'server', 'yaml'],
  },
  kubelet: {
    core: [],
    allocation: ['core'],
    configuration: ['core'],
    images: ['core'],
    logs: ['core'],
    probes: ['core'],
    resources: ['core'],
    runtime: ['core', 'logs'],
    volumes: ['core', 'images'],
    pods: ['allocation', 'core', 'images', 'logs', 'probes', 'resources', 'volumes'],
    eviction: ['core', 'pods', 'resources', 'volumes'],
    node: ['core', 'eviction', 'pods'],
    sources: ['core', 'pods'],
    views: ['core'],
    server: ['configuration', 'core', 'eviction', 'views'],
  },
}

/** Files directly in a top folder that its subfolders may import all the same: the contract that they implement. */
export const shared: Readonly<Record<string, readonly string[]>> = { store: ['leaseId.ts', 'store.ts', 'storeError.ts', 'wantsSpace.ts'] }

/** Code that must be a function of its arguments: no clock, timers, process or I/O. Globs under src/. */
export const pure: readonly string[] = [
  'base/**',
  'api/**',
  'cel/**',
  'scheduler/plugins/**',
  'store/bbolt/**',
  'store/local/mvcc/**',
  'proxy/model.ts',
  'proxy/externalAddresses.ts',
  ...['compilePolicy', 'explain', 'facts', 'isolations', 'model', 'nftables', 'peerGroup', 'ruleTexts', 'terms'].map((file) => `network/policy/${file}.ts`),
  'network/shownRoutes.ts',
  ...['diagnose', 'endpoints'].map((file) => `cli/net/trace/${file}.ts`),
  'ingress/model/**',
  'trace/hops.ts',
  'ui/model/**',
  'why/**',
]

/** Modules of Node that pure code may import: they do no I/O and read no clock. */
export const pureModules: readonly string[] = ['node:events']

/** What pure code may not touch, and what it should use. */
export const impureGlobals: Readonly<Record<string, string>> = {
  Date: 'Time comes from a Clock; formats are in base/time.',
  setTimeout: 'Timers come from a Clock.',
  setInterval: 'Timers come from a Clock.',
  setImmediate: 'Timers come from a Clock.',
  performance: 'Time comes from a Clock.',
  process: 'Configuration comes from the arguments.',
}

export const maxLinesPerFile = 500
export const maxLinesPerFunction = 100
