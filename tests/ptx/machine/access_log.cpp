#include "tests/ptx/machine/access_log.h"

#include <algorithm>

namespace plumb::test::ptx {

AccessLog::Page& AccessLog::page_of(std::int64_t at, bool needs_bytes) {
  Page& page = pages_[static_cast<std::size_t>(at / kPageBytes)];
  if (page.generation != generation_) {
    page.generation = generation_;
    page.cell_bytes = kWordBytes;
    page.cells.assign(kPageBytes / kWordBytes, {});
  }
  if (needs_bytes && page.cell_bytes == kWordBytes) {
    std::vector<Cell> cells(kPageBytes);
    for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = page.cells[i / kWordBytes];
    page.cells = std::move(cells);
    page.cell_bytes = 1;
  }
  return page;
}

template <class Visit>
void AccessLog::for_each_cell(std::int64_t first, int bytes, const Visit& visit) {
  const bool needs_bytes = first % kWordBytes != 0 || bytes % kWordBytes != 0;
  for (std::int64_t at = first; at < first + bytes;) {
    Page& page = page_of(at, needs_bytes);
    const std::int64_t page_begin = at / kPageBytes * kPageBytes;
    const std::int64_t end = std::min(first + bytes, page_begin + kPageBytes);
    for (; at < end; at += page.cell_bytes)
      visit(page.cells[static_cast<std::size_t>((at - page_begin) / page.cell_bytes)]);
  }
}

std::optional<Conflict> AccessLog::read_cell(Cell& cell, std::uint32_t thread, const Clocks& clocks, bool needs_write) {
  if (cell.is_pending) return Conflict{Conflict::Kind::kPendingCopy, cell.write.thread};
  if (cell.write.clock == 0 && needs_write) return Conflict{Conflict::Kind::kUnwritten};
  if (!clocks.is_over(cell.write, thread)) return Conflict{Conflict::Kind::kAfterWrite, cell.write.thread};
  if (cell.write.clock == 0) cell.is_read_first = true;
  Moment& kept = clocks.is_over(cell.reads[0], thread) ? cell.reads[0] : cell.reads[1];
  kept = clocks.now(thread);
  return {};
}

std::optional<Conflict> AccessLog::write_cell(Cell& cell, std::uint32_t thread, const Clocks& clocks) {
  if (cell.is_pending) return Conflict{Conflict::Kind::kPendingCopy, cell.write.thread};
  std::optional<Conflict> found;
  if (!clocks.is_over(cell.write, thread)) found = {Conflict::Kind::kAfterWrite, cell.write.thread};
  for (Moment& read : cell.reads) {
    if (!clocks.is_over(read, thread)) found = {Conflict::Kind::kAfterRead, read.thread};
    read = {};
  }
  cell.write = clocks.now(thread);
  return found;
}

std::optional<Conflict> AccessLog::read(std::int64_t first, int bytes, std::uint32_t thread, const Clocks& clocks,
                                        bool needs_write) {
  std::optional<Conflict> found;
  for_each_cell(first, bytes, [&](Cell& cell) {
    if (auto conflict = read_cell(cell, thread, clocks, needs_write)) found = conflict;
  });
  return found;
}

std::optional<Conflict> AccessLog::write(std::int64_t first, int bytes, std::uint32_t thread, const Clocks& clocks) {
  std::optional<Conflict> found;
  for_each_cell(first, bytes, [&](Cell& cell) {
    if (auto conflict = write_cell(cell, thread, clocks)) found = conflict;
  });
  return found;
}

std::int64_t AccessLog::touched_bytes() const {
  std::int64_t bytes = 0;
  for (const Page& page : pages_)
    if (page.generation == generation_)
      for (const Cell& cell : page.cells)
        bytes += page.cell_bytes * ((cell.is_read_first ? 1 : 0) + (cell.write.clock != 0 ? 1 : 0));
  return bytes;
}

void AccessLog::begin_copy(std::int64_t first, int bytes) {
  for_each_cell(first, bytes, [](Cell& cell) { cell.is_pending = true; });
}

void AccessLog::end_copy(std::int64_t first, int bytes, Moment now) {
  for_each_cell(first, bytes, [&](Cell& cell) {
    cell.is_pending = false;
    cell.write = now;
  });
}

}  // namespace plumb::test::ptx
