// Plain little-endian writing and reading in one buffer, for records and tickets. Strings are u32 length + UTF-8.

const NO_STRING = 0xffffffff;

export class ByteWriter {
  buffer: Buffer;
  at: number;

  constructor(buffer: Buffer, at = 0) {
    this.buffer = buffer;
    this.at = at;
  }

  u8(value: number): void {
    this.buffer[this.at++] = value;
  }

  u32(value: number): void {
    this.at = this.buffer.writeUInt32LE(value >>> 0, this.at);
  }

  f64(value: number): void {
    this.at = this.buffer.writeDoubleLE(value, this.at);
  }

  text(value: string | undefined): void {
    if (value === undefined) {
      this.u32(NO_STRING);
      return;
    }
    const start = this.at + 4;
    // Short names are nearly always ASCII: a loop beats the call into native code.
    if (value.length <= 24 && writeAscii(this.buffer, start, value)) {
      this.u32(value.length);
      this.at = start + value.length;
      return;
    }
    const written = this.buffer.write(value, start, 'utf8');
    this.u32(written);
    this.at = start + written;
  }

  bytes(value: Uint8Array): void {
    this.u32(value.length);
    this.buffer.set(value, this.at);
    this.at += value.length;
  }
}

function writeAscii(buffer: Buffer, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 127) return false;
    buffer[at + i] = unit;
  }
  return true;
}

export class ByteReader {
  buffer: Buffer;
  at: number;

  constructor(buffer: Buffer, at = 0) {
    this.buffer = buffer;
    this.at = at;
  }

  u8(): number {
    return this.buffer[this.at++] as number;
  }

  u32(): number {
    const value = this.buffer.readUInt32LE(this.at);
    this.at += 4;
    return value;
  }

  f64(): number {
    const value = this.buffer.readDoubleLE(this.at);
    this.at += 8;
    return value;
  }

  text(): string | undefined {
    const length = this.u32();
    if (length === NO_STRING) return undefined;
    const value = this.buffer.toString('utf8', this.at, this.at + length);
    this.at += length;
    return value;
  }

  /** A copy: the memory below is reused. */
  bytes(): Buffer {
    const length = this.u32();
    const value = Buffer.allocUnsafe(length);
    this.buffer.copy(value, 0, this.at, this.at + length);
    this.at += length;
    return value;
  }
}

/** Upper bound of what `text` writes. */
export function textBytesMax(value: string | undefined): number {
  return 4 + (value === undefined ? 0 : value.length * 3);
}
