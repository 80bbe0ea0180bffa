/**
 * /openapi/v2 put together from pieces (L3): what is compiled in, one piece per custom resource definition, one per foreign server. A piece is made
 * and encoded once per revision of its source, with a turn of the event loop for others after each, so that a new definition costs what it adds.
 * Upstream: apiextensions-apiserver/pkg/controller/openapi, which keeps one specification per definition and merges them.
 */
import { type OpenApiInput, openApiV2 } from '#api/machinery/openapi/document'
import type { JsonSchema } from '#api/machinery/openapi/schemas'
import type { Catalog, CatalogSource } from '../catalog.ts'

const members = ['paths', 'definitions', 'parameters'] as const
type Member = (typeof members)[number]
/** By member of the document: each of its keys, encoded. */
type Piece = Readonly<Record<Member, ReadonlyMap<string, string>>>

export class OpenApiPieces {
  #builtIn: { readonly head: string; readonly piece: Piece } | undefined
  /** By revision. */
  #pieces = new Map<string, Piece>()

  /** The document as JSON. Of two pieces that say the same, the first counts. */
  async document(builtIn: () => JsonSchema, input: OpenApiInput, catalog: Catalog): Promise<Uint8Array> {
    this.#builtIn ??= encodedBuiltIn(builtIn())
    const { head, piece: first } = this.#builtIn
    const pieces = [first]
    const kept = new Map<string, Piece>()
    for (const source of catalog.sources()) {
      const { revision, definitions, foreign, openApi } = source
      const document = openApi?.v2 ?? (definitions && !foreign ? () => ownDocument(source, input) : undefined)
      if (!document) continue
      let piece = this.#pieces.get(revision)
      if (!piece) {
        piece = encoded(typeof document === 'function' ? document() : document)
        await new Promise((resolve) => setImmediate(resolve))
      }
      kept.set(revision, piece)
      pieces.push(piece)
    }
    this.#pieces = kept
    return Buffer.from(`${head}${members.map((member) => `,${JSON.stringify(member)}:{${entries(pieces, member)}}`).join('')}}`)
  }
}

function ownDocument({ entries: own, definitions = [] }: CatalogSource, input: OpenApiInput): JsonSchema {
  return openApiV2({ ...input, resources: own.map(({ discovered, facts }) => discovered ?? facts), extras: definitions })
}

function encodedBuiltIn(document: JsonSchema): { readonly head: string; readonly piece: Piece } {
  const rest = Object.fromEntries(Object.entries(document).filter(([name]) => !(members as readonly string[]).includes(name)))
  return { head: JSON.stringify(rest).slice(0, -1), piece: encoded(document) }
}

function encoded(document: JsonSchema): Piece {
  const texts = (member: Member) => new Map(Object.entries((document[member] ?? {}) as object).map(([key, value]) => [key, JSON.stringify(value)]))
  return { paths: texts('paths'), definitions: texts('definitions'), parameters: texts('parameters') }
}

function entries(pieces: readonly Piece[], member: Member): string {
  const all = new Map<string, string>()
  for (const piece of pieces) for (const [key, text] of piece[member]) if (!all.has(key)) all.set(key, text)
  return [...all].map(([key, text]) => `${JSON.stringify(key)}:${text}`).join(',')
}
