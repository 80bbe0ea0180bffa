/** What the HTTP client of @kubernetes/client-node 2 takes for granted and Node.js 20 lacks. Import it first. */
import workerThreads from 'node:worker_threads'
import zlib from 'node:zlib'

workerThreads.markAsUncloneable ??= () => undefined
zlib.createZstdDecompress ??= () => {
  throw new Error('this Node.js cannot unpack zstd')
}
Promise.withResolvers ??= () => {
  const made = {}
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }))
  return made
}
