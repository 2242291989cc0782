#include "server/response_store.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace sluice {
namespace {

namespace json = boost::json;

class FakeClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(std::chrono::seconds time) { now_ += time; }

 private:
  TimePoint now_{};
};

json::object response(const std::string& id, const std::string& text = "out") {
  return json::object{{"id", id}, {"output", json::array{json::object{{"text", text}}}}};
}

class ResponseStoreTest : public ::testing::Test {
 protected:
  void put(const std::string& id, const std::string& before = "", const std::string& text = "out") {
    ResponseStore::Turns turns;
    if (!before.empty()) {
      turns = store_.turns("me", before).value();
    }
    store_.put({"me", turns, json::array{json::object{{"text", "in " + id}}}}, response(id, text));
  }

  FakeClock clock_;
  ResponseStore store_{{.entries_max = 4, .bytes_max = 4096, .lifetime = std::chrono::hours(24)},
                       clock_};
};

TEST_F(ResponseStoreTest, KeepsResponsesForTheirOwnerOnly) {
  put("a");
  EXPECT_EQ(store_.response("me", "a"), json::serialize(response("a")));
  EXPECT_FALSE(store_.response("you", "a"));
  EXPECT_FALSE(store_.turns("", "a"));
  EXPECT_FALSE(store_.erase("you", "a"));
  EXPECT_FALSE(store_.response("me", "b"));
  EXPECT_TRUE(store_.erase("me", "a"));
  EXPECT_FALSE(store_.response("me", "a"));
  EXPECT_EQ(store_.bytes(), 0U);
}

TEST_F(ResponseStoreTest, AConversationOutlivesItsFirstResponses) {
  put("a");
  put("b", "a");
  EXPECT_TRUE(store_.erase("me", "a"));
  put("c", "b");
  EXPECT_EQ(json::value(ResponseStore::items_of(store_.turns("me", "c").value())),
            json::parse(R"([{"text":"in a"},{"text":"out"},{"text":"in b"},{"text":"out"},
                            {"text":"in c"},{"text":"out"}])"));
  EXPECT_EQ(store_.input_items("me", "b"), json::parse(R"([{"text":"in b"}])").as_array());
  EXPECT_TRUE(store_.erase("me", "b"));
  EXPECT_TRUE(store_.erase("me", "c"));
  EXPECT_EQ(store_.bytes(), 0U);
}

TEST_F(ResponseStoreTest, TheLeastRecentlyUsedGoFirst) {
  for (const char* id : {"a", "b", "c", "d"}) {
    put(id);
  }
  EXPECT_TRUE(store_.response("me", "a"));
  put("e");
  EXPECT_EQ(store_.entry_count(), 4U);
  EXPECT_TRUE(store_.response("me", "a"));
  EXPECT_FALSE(store_.response("me", "b"));
}

TEST_F(ResponseStoreTest, BytesAreLimitedWithThoseOfSharedTurns) {
  put("a", "", std::string(1500, 'x'));  // counted twice: in the object and in its turn
  put("b", "a");
  EXPECT_TRUE(store_.response("me", "a"));
  EXPECT_TRUE(store_.response("me", "b"));
  put("c", "", std::string(800, 'x'));
  // Dropping "a" alone does not free the turn that "b" shares, so "b" goes too.
  EXPECT_LE(store_.bytes(), 4096U);
  EXPECT_TRUE(store_.response("me", "c"));
  put("huge", "", std::string(5000, 'x'));
  EXPECT_FALSE(store_.response("me", "huge"));
  EXPECT_EQ(store_.entry_count(), 0U);
  EXPECT_EQ(store_.bytes(), 0U);
}

TEST_F(ResponseStoreTest, NothingOutlivesItsLifetime) {
  put("a");
  clock_.advance(std::chrono::hours(23));
  EXPECT_TRUE(store_.response("me", "a"));
  clock_.advance(std::chrono::hours(1));
  EXPECT_FALSE(store_.response("me", "a"));
  put("b");
  clock_.advance(std::chrono::hours(24));
  put("c");
  EXPECT_EQ(store_.entry_count(), 1U);
}

}  // namespace
}  // namespace sluice
