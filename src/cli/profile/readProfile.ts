/**
 * Reads profiles in pprof's format (L4): samples with the functions of their stacks. Of components of Skiff and, since the format is theirs, of Go programs.
 * Upstream: google/pprof proto/profile.proto.
 */
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'

export interface ProfileFunction {
  readonly name: string
  readonly file: string
  /** 0: unknown. */
  readonly line: number
}

export interface Profile {
  /** What each value of a sample counts, e.g. `cpu` in `nanoseconds`. */
  readonly types: readonly { readonly type: string; readonly unit: string }[]
  readonly samples: readonly ProfileSample[]
  readonly durationNs: number
}

export interface ProfileSample {
  /** The function that ran, or that allocated; undefined: not known. */
  readonly leaf: ProfileFunction | undefined
  readonly values: readonly number[]
}

/** A profile of an hour has less. */
const mostBytes = 256 * 2 ** 20
const unzip = promisify(gunzip)

/** @throws Error when the bytes are no such profile */
export async function readProfile(compressed: Uint8Array): Promise<Profile> {
  const bytes = await unzip(compressed, { maxOutputLength: mostBytes })
  const parts = new ProfileParts()
  readFields(new BinaryReader(bytes), bytes.length, (field, reader, wireType) => parts.read(field, reader, wireType))
  return parts.profile()
}

type OnField = (field: number, reader: BinaryReader, wireType: WireType) => void

/** Calls back for every field before `end`; the callback reads its value. */
function readFields(reader: BinaryReader, end: number, onField: OnField): void {
  while (reader.pos < end) {
    const [field, wireType] = reader.tag()
    onField(field, reader, wireType)
  }
}

function readMessage(reader: BinaryReader, onField: OnField): void {
  const length = reader.uint32()
  readFields(reader, reader.pos + length, onField)
}

/** Numbers of a repeated field, packed or one by one. */
function readNumbers(reader: BinaryReader, wireType: WireType, into: number[]): void {
  if (wireType !== WireType.LengthDelimited) {
    into.push(Number(reader.int64()))
    return
  }
  const length = reader.uint32()
  for (const end = reader.pos + length; reader.pos < end; ) into.push(Number(reader.int64()))
}

/** Numbers of a message by their fields; other fields are skipped. */
function readNumberFields(reader: BinaryReader): ReadonlyMap<number, number> {
  const numbers = new Map<number, number>()
  readMessage(reader, (field, inner, wireType) => {
    if (wireType === WireType.Varint) numbers.set(field, Number(inner.int64()))
    else inner.skip(wireType, field)
  })
  return numbers
}

interface Line {
  readonly functionId: number
  readonly line: number
}

/** Collects the tables of a profile, which refer to each other in any order. */
class ProfileParts {
  readonly #types: ReadonlyMap<number, number>[] = []
  readonly #samples: { readonly locations: readonly number[]; readonly values: readonly number[] }[] = []
  /** The innermost line of each location. */
  readonly #locations = new Map<number, Line>()
  readonly #functions = new Map<number, ReadonlyMap<number, number>>()
  readonly #texts: string[] = []
  #durationNs = 0

  read(field: number, reader: BinaryReader, wireType: WireType): void {
    if (field === 1) this.#types.push(readNumberFields(reader))
    else if (field === 2) this.#readSample(reader)
    else if (field === 4) this.#readLocation(reader)
    else if (field === 5) {
      const numbers = readNumberFields(reader)
      this.#functions.set(numbers.get(1) ?? 0, numbers)
    } else if (field === 6) this.#texts.push(reader.string())
    else if (field === 10 && wireType === WireType.Varint) this.#durationNs = Number(reader.int64())
    else reader.skip(wireType, field)
  }

  profile(): Profile {
    return {
      types: this.#types.map((numbers) => ({ type: this.#text(numbers.get(1)), unit: this.#text(numbers.get(2)) })),
      samples: this.#samples.map(({ locations, values }) => ({ leaf: this.#functionAt(locations[0]), values })),
      durationNs: this.#durationNs,
    }
  }

  #readSample(reader: BinaryReader): void {
    const [locations, values] = [[] as number[], [] as number[]]
    readMessage(reader, (field, inner, wireType) => {
      if (field === 1) readNumbers(inner, wireType, locations)
      else if (field === 2) readNumbers(inner, wireType, values)
      else inner.skip(wireType, field)
    })
    this.#samples.push({ locations, values })
  }

  #readLocation(reader: BinaryReader): void {
    let id = 0
    let innermost: Line | undefined
    readMessage(reader, (field, inner, wireType) => {
      if (field === 1 && wireType === WireType.Varint) id = Number(inner.int64())
      else if (field === 4) {
        const numbers = readNumberFields(inner)
        innermost ??= { functionId: numbers.get(1) ?? 0, line: numbers.get(2) ?? 0 }
      } else inner.skip(wireType, field)
    })
    if (innermost) this.#locations.set(id, innermost)
  }

  #functionAt(location = 0): ProfileFunction | undefined {
    const line = this.#locations.get(location)
    const found = line && this.#functions.get(line.functionId)
    return found && { name: this.#text(found.get(2)), file: this.#text(found.get(4)), line: line.line }
  }

  #text(at = 0): string {
    return this.#texts[at] ?? ''
  }
}
