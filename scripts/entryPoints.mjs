/** What the build makes bundles of, and what stays outside them. */

export const libraries = {
  client: 'src/main/package/client.ts',
  controller: 'src/main/package/controller.ts',
  csi: 'src/main/package/csi.ts',
  scheduler: 'src/main/package/scheduler.ts',
  testing: 'src/testing/package.ts',
}

export const entryPoints = {
  skiff: 'src/main/skiff.ts',
  yamlWorker: 'src/apiserver/yaml/worker.ts',
  passwordWorker: 'src/main/etcd/passwordWorker.ts',
  ...libraries,
}

/** Packages with native parts or run-time file look-ups. */
export const external = ['@peculiar/x509', 'reflect-metadata', 'lmdb']
