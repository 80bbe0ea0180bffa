/** HPACK's static table (L3): the fields that every connection knows from the beginning, from index 1. Upstream: RFC 7541 appendix A. */
const entries = [
  ':authority',
  ':method GET',
  ':method POST',
  ':path /',
  ':path /index.html',
  ':scheme http',
  ':scheme https',
  ':status 200',
  ':status 204',
  ':status 206',
  ':status 304',
  ':status 400',
  ':status 404',
  ':status 500',
  'accept-charset',
  'accept-encoding gzip, deflate',
  'accept-language',
  'accept-ranges',
  'accept',
  'access-control-allow-origin',
  'age',
  'allow',
  'authorization',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-range',
  'content-type',
  'cookie',
  'date',
  'etag',
  'expect',
  'expires',
  'from',
  'host',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'last-modified',
  'link',
  'location',
  'max-forwards',
  'proxy-authenticate',
  'proxy-authorization',
  'range',
  'referer',
  'refresh',
  'retry-after',
  'server',
  'set-cookie',
  'strict-transport-security',
  'transfer-encoding',
  'user-agent',
  'vary',
  'via',
  'www-authenticate',
]

/** A field as a table holds it. */
export interface Field {
  readonly name: string
  readonly value: string
  /** Name and value have only valid characters. Invalid fields are compressed too. */
  readonly isSound: boolean
}

export const staticTable: readonly Field[] = entries.map((entry) => {
  const space = entry.indexOf(' ')
  return { name: space < 0 ? entry : entry.slice(0, space), value: space < 0 ? '' : entry.slice(space + 1), isSound: true }
})

/** The first index of each name, from 1. */
export const staticIndexes: ReadonlyMap<string, number> = new Map(staticTable.map(({ name }, index) => [name, index + 1] as const).reverse())
